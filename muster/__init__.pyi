from muster.api.errors import ClusterError as ClusterError
from muster.api.errors import ManifestError as ManifestError
from muster.api.errors import MusterError as MusterError
from muster.api.errors import NotFoundError as NotFoundError
from muster.api.errors import RefusedError as RefusedError
from muster.api.errors import WaitFailedError as WaitFailedError
from muster.api.errors import WaitTimeoutError as WaitTimeoutError
from muster.api.functions import explain as explain
from muster.api.functions import explain_async as explain_async
from muster.api.functions import plan as plan
from muster.api.functions import plan_async as plan_async
from muster.api.functions import queues as queues
from muster.api.functions import queues_async as queues_async
from muster.api.functions import wait as wait
from muster.api.functions import wait_async as wait_async
from muster.api.values import Finding as Finding
from muster.api.values import Gang as Gang
from muster.api.values import Queue as Queue
from muster.api.values import Queues as Queues
from muster.api.values import Verdict as Verdict
from muster.api.values import Verdicts as Verdicts

__version__: str
