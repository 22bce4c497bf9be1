"""Labels that the theme leaves out, for people who use a keyboard or a screen reader; axe-core names them."""

_INSTEAD = {
    # A heading without a level.
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    # Two landmarks of one kind, which only their names tell apart.
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Menu">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    # Wide content scrolls by the keys as well.
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


def mend(page: str) -> str:
    """The HTML of a page with a level for each heading of the menu, names for its landmarks, and boxes for the keys."""
    for found, better in _INSTEAD.items():
        page = page.replace(found, better)
    return page
