// What every pod's sandbox runs: nothing.
module muster.dev/hack/testbed/modules/pause

go 1.26.0
