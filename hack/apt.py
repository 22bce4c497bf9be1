"""The machine's own apt, which checks signatures, kept to one folder: nothing is installed, and no root is needed."""

from pathlib import Path


def apt(
    program: str, home: Path, *, lists: Path | None = None, installed: bool = True, architecture: str = ""
) -> list[str]:
    """Return the beginning of a call of apt-get or apt-cache that writes nothing outside of `home`, nor of `lists`.

    It uses the machine's lists of packages, or the ones in `lists`, where `update` puts new ones. Unless `installed`,
    packages that this machine has are downloaded, too. Archives are put in `home/archives`, except by `download`. A
    foreign `architecture` needs `lists` of its own.
    """
    (home / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    facts = {
        "Dir::Cache": home,
        "Dir::Cache::archives": "archives/",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        # As the calling user: apt's own user may not read a home folder.
        "APT::Sandbox::User": "root",
        "Acquire::Retries": 3,
    }
    if lists is not None:
        lists.mkdir(parents=True, exist_ok=True)
        facts["Dir::State::lists"] = lists
    if architecture:
        facts |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    if installed:
        # Only root may lock the list of installed packages.
        facts["Debug::NoLocking"] = 1
    else:
        status = home / "status"
        status.touch()
        facts["Dir::State::status"] = status
    return [program, *(word for name, value in facts.items() for word in ("-o", f"{name}={value}"))]
