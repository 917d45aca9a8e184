package program

import (
	"cmp"
	"runtime/debug"
)

// Version returns the versions of the main module and of Go that this process was built with. A
// build from a checkout without a VCS stamp is "(devel)".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)") + ", " + info.GoVersion
}
