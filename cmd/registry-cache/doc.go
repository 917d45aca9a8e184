// Command registry-cache runs in the shoot. Its image serves as cache and as cleaner:
//
//	registry-cache serve CONFIG    run one pull-through cache with distribution's configuration file
//	registry-cache clean           remove the configuration of caches from the node of the pod
//	registry-cache pause           wait for SIGTERM: keeps a pod running after its init container
//
// clean takes --upstream HOST[:PORT] (repeatable) or --all, --endpoint URL (repeatable) of the
// deleted caches, and --root DIR (default /host), below which the node's /etc/containerd,
// /etc/systemd/system and /run/systemd are mounted.
//
// Exit codes: 0 success, 1 failure, 2 usage error (flags, arguments, configuration file), 3
// environment error (no systemd, address in use). SIGTERM ends every command.
package main
