"""muster's image, built without a container daemon and without root: `make image`.

Three layers: Debian's CPython with the few libraries that it needs, the locked requirements, and muster. Each is a
function of what goes into it, so two builds of one commit from the same packages have the same digest, and an upgrade
of muster ships only the last.
"""
