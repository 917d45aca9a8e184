package nodeconfig

import _ "embed"

const (
	// ScriptPath is where the script lies on a node.
	ScriptPath = "/opt/bin/configure-containerd-registries.sh"
	// ScriptMode is the file mode of the script.
	ScriptMode = 0o744
)

//go:embed configure-containerd-registries.sh
var script string

// Script returns the script that a node runs, bash and curl only. Its arguments (Registry.Argument) are the full set of
// registries: it removes our hosts.toml of every other upstream, waits for the endpoint of each one in the background
// and writes its hosts.toml as soon as GET <endpoint>/v2/ is answered with 200. It always exits with 0.
func Script() string {
	return script
}
