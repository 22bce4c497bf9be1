from muster.api import ClusterError as ClusterError
from muster.api import Finding as Finding
from muster.api import Gang as Gang
from muster.api import ManifestError as ManifestError
from muster.api import MusterError as MusterError
from muster.api import NotFoundError as NotFoundError
from muster.api import Queue as Queue
from muster.api import Queues as Queues
from muster.api import RefusedError as RefusedError
from muster.api import Verdict as Verdict
from muster.api import Verdicts as Verdicts
from muster.api import WaitFailedError as WaitFailedError
from muster.api import WaitTimeoutError as WaitTimeoutError
from muster.api import explain as explain
from muster.api import explain_async as explain_async
from muster.api import plan as plan
from muster.api import plan_async as plan_async
from muster.api import queues as queues
from muster.api import queues_async as queues_async
from muster.api import wait as wait
from muster.api import wait_async as wait_async

__version__: str
