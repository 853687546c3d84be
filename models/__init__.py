"""The models, one file each: read one as its mathematics, copy it, change it, pass it to `evalbayes.fit`.

Each file holds one function ``name(outcomes, *, priors..., marginal=False) -> pymc.Model``. What such a
function must return is written in `evalbayes.models.effects`.
"""

NAMES = ("crossed", "crossed_beta_binomial", "crossed_discrimination", "beta_binomial")
