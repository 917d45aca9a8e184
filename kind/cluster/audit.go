package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Paths of the audit policy and log, on the control plane node and in the API server's pod.
const (
	auditPolicyDir  = "/etc/kubernetes/audit"
	auditPolicyName = "policy.yaml"
	auditLogDir     = "/var/log/kubernetes-audit"
	auditLog        = auditLogDir + "/audit.log"
)

// AuditLog returns the answered requests of the groups in Config.Audited, oldest first, with user,
// verb, object and status code. The API server starts a new file after 100 MiB; AuditLog reads only
// the newest file. Events are written asynchronously, so callers may have to poll for an event.
func (c *Cluster) AuditLog(ctx context.Context) ([]auditv1.Event, error) {
	data, err := c.ControlPlane().ReadFile(ctx, auditLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var events []auditv1.Event
	if err == nil {
		events, err = parseAuditLog(data)
	}
	if err != nil {
		return nil, fmt.Errorf("audit log of cluster %s: %w", c.name, err)
	}
	return events, nil
}

// parseAuditLog reads one event per line. It skips an incomplete last line.
func parseAuditLog(data []byte) ([]auditv1.Event, error) {
	var events []auditv1.Event
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("event %d: %w", len(events)+1, err)
		}
		events = append(events, event)
	}
	return events, nil
}

// auditPolicy returns a policy that logs only the requests of the groups. It logs only their
// metadata, since bodies may contain Secrets.
func auditPolicy(groups []string) auditv1.Policy {
	policy := auditv1.Policy{OmitStages: []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseStarted}}
	policy.APIVersion, policy.Kind = auditv1.SchemeGroupVersion.String(), "Policy"
	policy.Rules = []auditv1.PolicyRule{{Level: auditv1.LevelMetadata, UserGroups: groups}, {Level: auditv1.LevelNone}}
	return policy
}

// auditDir returns the folder on this machine for the audit policy. It is next to the kubeconfig,
// so removing the testbed's folder removes both.
func auditDir(c Config) string {
	return filepath.Join(filepath.Dir(c.Kubeconfig), "audit-"+c.Name)
}

// writeAuditPolicy writes the policy to the folder that KindConfig mounts into the control plane.
func writeAuditPolicy(c Config) error {
	if len(c.Audited) == 0 {
		return nil
	}
	data, err := yaml.Marshal(auditPolicy(c.Audited))
	if err != nil {
		return fmt.Errorf("encoding the audit policy: %w", err)
	}
	if err := os.MkdirAll(auditDir(c), 0o755); err != nil {
		return fmt.Errorf("creating the folder of the audit policy: %w", err)
	}
	return file.Replace(filepath.Join(auditDir(c), auditPolicyName), data, 0o644)
}

// auditPatch returns a patch that makes the API server write the audit log. kind applies the patch
// to every version of kubeadm's configuration: it has no apiVersion, and extraArgs is a map.
func auditPatch() string {
	volume := func(name, path, pathType string, readOnly bool) map[string]any {
		return map[string]any{"name": name, "hostPath": path, "mountPath": path, "pathType": pathType, "readOnly": readOnly}
	}
	return mustYAML(map[string]any{
		"kind": "ClusterConfiguration",
		"apiServer": map[string]any{
			"extraArgs": map[string]any{
				"audit-policy-file":   auditPolicyDir + "/" + auditPolicyName,
				"audit-log-path":      auditLog,
				"audit-log-maxsize":   "100",
				"audit-log-maxbackup": "1",
			},
			"extraVolumes": []any{
				volume("audit-policy", auditPolicyDir, "Directory", true),
				volume("audit-log", auditLogDir, "DirectoryOrCreate", false),
			},
		},
	})
}
