// Command runcshim runs between Docker and runc on hosts with a restricted capability bounding set.
//
// `docker run --privileged` and `docker exec --privileged` request every capability. If the host
// lacks one, runc fails with "unable to apply caps: operation not permitted". The shim edits the
// bundle's config.json, or the process file of exec: it removes the capabilities that are not in
// its own bounding set. If CAP_SYS_RESOURCE is one of them, it also raises a negative oom_score_adj
// to 0. It then executes runc with the same arguments.
//
// The shim uses only runc's command line and the OCI runtime specification. Nothing in it is
// specific to Docker, kind or the testbed.
package main
