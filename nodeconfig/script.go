package nodeconfig

import _ "embed"

const (
	// ScriptPath is the path of the script on a node.
	ScriptPath = "/opt/bin/configure-containerd-registries.sh"
	// ScriptMode is the file mode of the script.
	ScriptMode = 0o744
)

//go:embed configure-containerd-registries.sh
var script string

// Script returns the script that runs on a node. It needs only bash and curl. Its arguments
// (Registry.Argument) are the full set of registries: it removes the extension's hosts.toml of
// every other upstream. For each argument it waits in the background for the endpoint, and writes
// the hosts.toml as soon as GET <endpoint>/v2/ returns 200. It always exits with 0.
func Script() string {
	return script
}
