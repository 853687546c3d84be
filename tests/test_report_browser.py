"""The page in a real browser: it renders, sorts and switches its theme, fits a phone, and axe-core finds nothing."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from boards import HOSTILE, board_with
from evalbayes import fit, report

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """Chromium, driven by playwright; without them the tests skip, and fail where CI promises both."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        reason = "no chromium, or no playwright: install Debian's chromium and pip's playwright"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, small_board, small_fit) -> dict[str, Path]:
    """Three pages: repeated runs, hostile names run once, and two entries."""
    folder = tmp_path_factory.mktemp("pages")
    hostile = board_with(HOSTILE).assign_attrs(source="<b>made</b>.csv")
    two = small_board.isel(config=[0, 1])
    return {
        "repeated": report(small_board, folder / "repeated.html", fit=small_fit),
        "hostile": report(hostile, folder / "hostile.html", fit=fit(hostile, "crossed", method="laplace")),
        "two": report(two, folder / "two.html", fit=fit(two, "crossed", method="laplace")),
    }


@pytest.fixture
def visit(browser, pages):
    """Open a page; what the console said is in ``said``, what was asked of the network in ``asked``."""
    contexts = []

    def visit(name: str, width: int = 1280, scheme: str = "light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: (page.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(pages[name].as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["repeated", "hostile", "two"])
def test_a_page_renders_without_errors_fits_its_window_and_passes_axe(visit, pages, name, width, scheme):
    """axe-core with all its rules, contrast among them; nothing but the file itself is asked for."""
    from axe_playwright_python.sync_playwright import Axe

    page = visit(name, width, scheme)
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("data:")] == [pages[name].as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == []


def test_hostile_names_are_text(visit):
    page = visit("hostile")
    text = page.inner_text("main")
    assert all(name in text for name in HOSTILE)
    assert page.locator("img, iframe, object").count() == 0
    assert page.said == []


def _column(page, at: int) -> list[str]:
    cells = page.locator("table.sortable").first.locator(f"tbody tr > :nth-child({at})")
    return [cell.strip() for cell in cells.all_inner_texts()]


def test_a_click_sorts_the_table_and_a_second_turns_it_round(visit):
    page = visit("repeated")
    heads = page.locator("table.sortable").first.locator("thead th")
    names = _column(page, 2)
    heads.nth(1).locator("button").click()
    assert _column(page, 2) == sorted(names)
    assert heads.nth(1).get_attribute("aria-sort") == "ascending"
    heads.nth(1).locator("button").click()
    assert _column(page, 2) == sorted(names, reverse=True)
    heads.nth(2).locator("button").click()
    observed = [float(text.rstrip("%")) for text in _column(page, 3)]
    assert observed == sorted(observed, reverse=True)
    assert heads.nth(1).get_attribute("aria-sort") is None
    heads.nth(0).locator("button").click()
    assert _column(page, 2) == names


def test_the_table_sorts_by_keyboard_alone(visit):
    page = visit("repeated")
    page.locator("table.sortable thead button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert _column(page, 2) == sorted(_column(page, 2))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_theme_switches_and_axe_still_finds_nothing(visit, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = visit("repeated", scheme=scheme)
    paper = "getComputedStyle(document.body).backgroundColor"
    before, other = page.evaluate(paper), "Dark theme" if scheme == "light" else "Light theme"
    assert page.locator("#theme").inner_text() == other
    page.locator("#theme").click()
    assert page.evaluate(paper) != before
    assert page.evaluate("document.documentElement.dataset.theme") != scheme
    assert Axe().run(page).response["violations"] == []
    page.locator("#theme").click()
    assert page.evaluate(paper) == before


def test_without_scripts_the_page_holds_every_number(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["repeated"].as_uri())
    assert page.locator("table.sortable tbody tr").count() >= 8
    assert page.locator("button").count() == 0
    context.close()


def test_the_heads_of_columns_say_what_they_mean(visit):
    page = visit("repeated")
    heads = page.locator("table.sortable").first.locator("thead th")
    assert all(heads.nth(i).get_attribute("title") for i in range(heads.count()))


def test_it_prints_in_black_on_white(visit):
    page = visit("repeated", scheme="dark")
    page.emulate_media(media="print", color_scheme="light")
    assert page.locator("#theme").is_hidden()
