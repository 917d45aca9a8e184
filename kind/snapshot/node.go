package snapshot

import _ "embed"

// node is the script that runs on a node. It is handed over as an argument, so nothing of it is left there.
//
//go:embed node.sh
var node string

// SaveArgv is the command line for the node that has the folder of a volume: it writes an archive of it to standard output. The
// processes of the pod of kube-system are stopped meanwhile, for as long as hard links take.
func SaveArgv(pod, folder string) []string { return argv("save", pod, folder) }

// RestoreArgv reads an archive from standard input and puts its content in the place of that of the folder; what was there is
// gone. The processes of the pod are killed: the kubelet starts them on the new content.
func RestoreArgv(pod, folder string) []string { return argv("restore", pod, folder) }

// SizeArgv prints the bytes that the folder holds.
func SizeArgv(folder string) []string { return argv("size", folder) }

func argv(verb string, arguments ...string) []string {
	return append([]string{"bash", "-c", node, "snapshot", verb}, arguments...)
}
