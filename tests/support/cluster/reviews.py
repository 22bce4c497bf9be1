"""How many reviews the webhook has answered, by its own metrics."""

import re
import urllib.request

from hack.testbed import PATIENCE
from hack.testbed.muster import MusterInstall
from hack.testbed.process import Process


def reviews(installed: MusterInstall, webhook: str, *processes: Process) -> int:
    """Count the reviews of one webhook (`pods`, `workloads`, …) in these processes, or in all of the release."""
    count = 0.0
    for process in processes or installed.webhooks:
        with urllib.request.urlopen(installed.url(process, "/metrics"), timeout=PATIENCE) as response:  # noqa: S310 - loopback
            text = response.read().decode()
        found = re.findall(rf'^muster_webhook_reviews_total{{.*webhook="{webhook}".*}} (\S+)$', text, re.MULTILINE)
        count += sum(map(float, found))
    return int(count)
