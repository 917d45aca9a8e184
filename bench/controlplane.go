package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	apiServerStopTimeout = 30 * time.Second
	// auditFileMegabytes is so large that kube-apiserver never rotates the audit log.
	auditFileMegabytes = "100000"
)

// APIServer and Etcd are the names of the programs of a control plane.
const APIServer, Etcd = "kube-apiserver", "etcd"

// ControlPlane is a running API server without controllers. Its etcd does not wait for fsync.
type ControlPlane struct {
	// Audit is the audit log. It contains only requests of the users that are passed to
	// StartControlPlane.
	Audit *AuditLog

	environment *envtest.Environment
	users       sync.Mutex // AddUser is not safe for concurrent use
	admin       *rest.Config
}

// StartControlPlane runs the two programs, which are paths by name. The audit log, a new file in the
// folder, records the requests of the audited users, except requests for Leases. Without audited
// users it stays empty. The caller must always call Stop.
func StartControlPlane(programs map[string]string, folder string, audited ...string) (*ControlPlane, error) {
	policy := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy(audited)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	c := &ControlPlane{Audit: &AuditLog{path: filepath.Join(folder, "audit.log")}}
	c.environment = &envtest.Environment{ControlPlaneStartTimeout: readyTimeout, ControlPlaneStopTimeout: apiServerStopTimeout}
	c.environment.ControlPlane.Etcd = &envtest.Etcd{Path: programs[Etcd]}
	server := c.environment.ControlPlane.GetAPIServer()
	server.Path = programs[APIServer]
	server.Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", c.Audit.path).
		Set("audit-log-mode", "blocking"). // events are in the file soon after the responses
		Set("audit-log-maxsize", auditFileMegabytes)
	var err error
	if c.admin, err = c.environment.Start(); err != nil {
		return nil, fmt.Errorf("starting %s with %s: %w", programs[APIServer], programs[Etcd], err)
	}
	return c, nil
}

// Admin returns the config of a cluster administrator without a client-side rate limit.
func (c *ControlPlane) Admin() *rest.Config {
	config := rest.CopyConfig(c.admin)
	config.QPS = -1
	return config
}

// Kubeconfig creates a user and returns its kubeconfig, with a client certificate.
func (c *ControlPlane) Kubeconfig(name string, groups ...string) ([]byte, error) {
	c.users.Lock()
	defer c.users.Unlock()
	user, err := c.environment.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("adding user %s: %w", name, err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of user %s: %w", name, err)
	}
	return kubeconfig, nil
}

// Stop ends both processes and removes their files. The audit log alone can be hundreds of MB.
func (c *ControlPlane) Stop() error {
	if err := errors.Join(c.environment.Stop(), os.RemoveAll(c.Audit.path)); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return nil
}

// auditPolicy returns a policy that records one event for each request of the users: at the
// response, or at the start of a watch. Requests for Leases are omitted, because they never stop,
// and their number does not depend on the number of shoots.
func auditPolicy(users []string) string {
	var list strings.Builder
	if len(users) == 0 {
		users = []string{"nobody"} // a rule without users is for all users
	}
	for _, user := range users {
		fmt.Fprintf(&list, "  - %q\n", user)
	}
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: Metadata
  users:
` + list.String() + `- level: None
`
}
