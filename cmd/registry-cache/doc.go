// Command registry-cache is what runs in the shoot. Its only image serves both as cache and as cleaner:
//
//	registry-cache serve CONFIG    one pull-through cache; CONFIG is a configuration file of distribution v3
//	registry-cache clean           undo the configuration of the node that the pod runs on, then end
//	registry-cache pause           do nothing until SIGTERM: keeps the pod of a DaemonSet alive after its init container
//
// clean takes --upstream HOST[:PORT] (repeatable) and --all, at least one of them, and --root DIR (default /host), below
// which the node's /etc/containerd, /etc/systemd/system and /run/systemd are mounted.
//
// Exit codes: 0 fine, 1 it failed, 2 wrong use (flags, arguments, configuration file), 3 the environment (no systemd, an
// address in use). SIGTERM ends every command.
package main
