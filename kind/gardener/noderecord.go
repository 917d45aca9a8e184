package gardener

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	"github.com/gardener/gardener/pkg/utils"
)

// Binary is the content of a file, with its checksum. NewBinary creates it.
type Binary struct {
	data []byte
	sum  string // SHA-256 in hexadecimal
}

// NewBinary returns a Binary with this content, which must not change afterwards. For a large
// program, call NewBinary once per process, because it computes the checksum.
func NewBinary(data []byte) Binary {
	return Binary{data: data, sum: utils.ComputeSHA256Hex(data)}
}

type nodeFile struct {
	path    string
	mode    fs.FileMode
	content Binary
}

func textFile(path string, mode fs.FileMode, content string) nodeFile {
	return nodeFile{path, mode, NewBinary([]byte(content))}
}

func (f nodeFile) writeTo(ctx context.Context, node Node) error {
	if err := node.WriteFile(ctx, f.path, f.mode, f.content.data); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

func (f nodeFile) recordLine() string { return f.content.sum + "  " + f.path }

// sizeLine returns the line that readScript prints for an unchanged file of the right size.
func (f nodeFile) sizeLine() string { return fmt.Sprintf("%d  %s", len(f.content.data), f.path) }

// installRecord is a file on the node with the checksums of the installed files in the format of
// sha256sum. The file disappears with the node's container.
const installRecord = "/kind/registry-cache-testbed-node-agent"

func recordOf(files []nodeFile) nodeFile {
	var lines strings.Builder
	for _, file := range files {
		lines.WriteString(file.recordLine() + "\n")
	}
	return textFile(installRecord, 0o644, lines.String())
}

// nodeState is the state of a node before an installation.
type nodeState struct {
	lines  []string // of the record, and a sizeLine for each file that has not changed since the record was written
	active bool     // the unit is enabled and running
}

// readScript prints the record $2, then the sizes of the files $3... that exist and are unchanged
// since the record was written, then "active" if the unit $1 is enabled and active. To find changed
// files, it compares inode change times (ctime), because tar restores modification times. All this
// is in one script, because starting a command on a node takes longer than the script.
const readScript = `unit=$1 record=$2; shift 2
cat -- "$record" 2>/dev/null && find "$@" -maxdepth 0 ! -newercc "$record" -printf '%s  %p\n' 2>/dev/null
systemctl is-enabled --quiet "$unit" && systemctl is-active "$unit"
true`

func readState(ctx context.Context, node Node, files []nodeFile) (nodeState, error) {
	argv := []string{"sh", "-c", readScript, "sh", nodeagentconfigv1alpha1.UnitName, installRecord}
	for _, file := range files {
		argv = append(argv, file.path)
	}
	output, err := node.Exec(ctx, argv...)
	if err != nil {
		return nodeState{}, err
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return nodeState{lines: lines, active: lines[len(lines)-1] == "active"}, nil
}

// outdated returns the files that are missing on the node or have other content there.
func (s nodeState) outdated(files []nodeFile) []nodeFile {
	return slices.DeleteFunc(slices.Clone(files), func(file nodeFile) bool {
		return slices.Contains(s.lines, file.recordLine()) && slices.Contains(s.lines, file.sizeLine())
	})
}
