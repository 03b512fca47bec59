"""Questions that name days: which days, and what was said or holds on them."""
