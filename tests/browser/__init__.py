"""`muster page` in a real browser: looks, keyboard, screen readers, live updates, and without scripts."""
