"""Helpers of the tests: one of each, in the package that its subject names.

Manifests: `manifests.applied` has what users apply, `manifests.observed` what a watch shows. The cases of conformance
and the worlds of the fuzzer are the subjects of those suites and stay there. Clients: `hack.testbed.api.Api` asks an
apiserver, `cluster.verbs.Verbs` has kubectl's verbs on top of it, which `cluster.scene.Scene`, `cluster.desk.Desk`,
`cluster.policy_actors.Acting` and `faults.things.Things` are, and `faults.apiserver` stands in front of one or in its
place.
"""
