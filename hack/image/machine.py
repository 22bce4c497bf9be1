"""The architectures that an image can be for, and which of them this machine has."""

from dataclasses import dataclass

from hack.image.errors import ImageError, run

# The versions of Debian 12; the locked requirements are for the same Python.
PYTHON = "3.11"
GLIBC = 36


@dataclass(frozen=True, slots=True)
class Machine:
    """An architecture by the names that Debian (and OCI), its libraries' folder, and wheels have for it."""

    debian: str
    triplet: str
    wheels: str

    @property
    def libraries(self) -> str:
        """The folder of the shared libraries."""
        return f"usr/lib/{self.triplet}"

    @property
    def platforms(self) -> list[str]:
        """Platform tags of the wheels that run on Debian 12's C library, the newest first."""
        versions = [f"manylinux_2_{minor}_{self.wheels}" for minor in range(GLIBC, 16, -1)]
        return [*versions, f"manylinux2014_{self.wheels}"]


MACHINES = {
    "amd64": Machine("amd64", "x86_64-linux-gnu", "x86_64"),
    "arm64": Machine("arm64", "aarch64-linux-gnu", "aarch64"),
}
"""Architectures, by Debian's and OCI's name."""


def this_machine() -> Machine:
    """Return the architecture that `dpkg` prints. Raises ImageError off Debian, or where there are no wheels."""
    name = run(["dpkg", "--print-architecture"], seconds=10).decode().strip()
    if name not in MACHINES:
        raise ImageError(f"this machine is {name}: the image can be built on {' and '.join(MACHINES)}")
    return MACHINES[name]
