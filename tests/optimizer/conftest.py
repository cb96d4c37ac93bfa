"""How hypothesis runs here: without deadlines, which a busy machine would miss."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
