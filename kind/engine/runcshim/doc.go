// Command runcshim stands between Docker and the real runc on hosts whose capability bounding set is restricted.
//
// `docker run --privileged` and `docker exec --privileged` ask runc for every capability there is. On a host that lacks
// one of them runc fails with "unable to apply caps: operation not permitted". Before it execs runc with the same
// arguments, the shim removes from the bundle's config.json, or from exec's process file, each capability that its own
// bounding set lacks, and lifts a negative oom_score_adj, which needs CAP_SYS_RESOURCE, to 0.
//
// It must not know Docker, kind or the testbed: all it sees is runc's command line and the OCI runtime specification.
package main
