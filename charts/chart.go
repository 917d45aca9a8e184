package charts

import (
	"embed"
	"fmt"
	"io/fs"
)

const extensionChart = "registry-cache-extension"

//go:embed all:registry-cache-extension
var files embed.FS

// Extension returns the Helm chart that installs the extension on a seed.
func Extension() fs.FS {
	chart, err := fs.Sub(files, extensionChart)
	if err != nil {
		panic(fmt.Sprintf("the embedded chart has no valid name: %v", err))
	}
	return chart
}
