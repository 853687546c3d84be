"""Run in a clean environment: `import evalbayes` is light, and every module and every model can be imported."""

import importlib
import pkgutil
import sys

HEAVY = ("pymc", "arviz", "jax", "matplotlib")


def main() -> int:
    """Import everything; return 1 when `import evalbayes` alone brought a heavy package in."""
    import evalbayes

    loaded = [name for name in HEAVY if name in sys.modules]
    if loaded:
        print(f"import evalbayes loads {', '.join(loaded)}", file=sys.stderr)
        return 1
    modules = [module.name for module in pkgutil.walk_packages(evalbayes.__path__, "evalbayes.")]
    for name in modules:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    models = [name for name in modules if name.startswith("evalbayes.models.")]
    print(f"{len(modules)} modules imported, of them models: {', '.join(models) or 'none'}")
    return 0 if models else 1


if __name__ == "__main__":
    sys.exit(main())
