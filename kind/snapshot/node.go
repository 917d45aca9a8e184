package snapshot

import _ "embed"

// node is the script that runs on a node. It is passed as an argument, so no file remains there.
//
//go:embed node.sh
var node string

// SaveArgv returns the command that writes an archive of the folder of a volume to standard output,
// on the node of the volume. It stops the processes of the pod, in kube-system, while it creates
// hard links.
func SaveArgv(pod, folder string) []string { return argv("save", pod, folder) }

// RestoreArgv returns the command that replaces the content of the folder with an archive from
// standard input. It kills the processes of the pod, which the kubelet restarts.
func RestoreArgv(pod, folder string) []string { return argv("restore", pod, folder) }

// SizeArgv returns the command that prints the size of the folder in bytes.
func SizeArgv(folder string) []string { return argv("size", folder) }

func argv(verb string, arguments ...string) []string {
	return append([]string{"bash", "-c", node, "snapshot", verb}, arguments...)
}
