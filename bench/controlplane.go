package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// APIServer and Etcd are the names of the programs of a control plane.
const (
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
)

// ControlPlane is a running API server without controllers. Its etcd does not wait for fsync.
type ControlPlane struct {
	// Audit is the audit log. It contains only requests of the audited user.
	Audit *AuditLog

	environment *envtest.Environment
	users       sync.Mutex // AddUser is not safe for concurrent use
	admin       *rest.Config
}

// StartControlPlane runs kube-apiserver and etcd, whose paths are in programs, in a new folder. The
// audit log there records the requests of the audited user, except those for Leases. The caller
// must call Stop.
func StartControlPlane(programs map[string]string, folder, audited string) (*ControlPlane, error) {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, fmt.Errorf("create the folder of an API server: %w", err)
	}
	policy := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, audited), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	log, err := os.Create(filepath.Join(folder, "audit.log")) // the API server appends
	if err != nil {
		return nil, fmt.Errorf("create the audit log: %w", err)
	}
	c := &ControlPlane{Audit: &AuditLog{file: log}}
	c.environment = &envtest.Environment{ControlPlaneStartTimeout: readyTimeout, ControlPlaneStopTimeout: 2 * stopTimeout}
	c.environment.ControlPlane.Etcd = &envtest.Etcd{Path: programs[Etcd]}
	server := c.environment.ControlPlane.GetAPIServer()
	server.Path = programs[APIServer]
	server.Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", log.Name()).
		Set("audit-log-mode", "blocking"). // events are in the file soon after the responses
		Set("audit-log-maxsize", "100000") // MB: it is never rotated
	if c.admin, err = c.environment.Start(); err != nil {
		return nil, fmt.Errorf("start %s with %s: %w", programs[APIServer], programs[Etcd], errors.Join(err, log.Close()))
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
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.KubeConfig()
}

// Stop ends both processes and removes their files. The audit log alone can be hundreds of MB.
func (c *ControlPlane) Stop() error {
	if err := errors.Join(c.environment.Stop(), c.Audit.file.Close(), os.Remove(c.Audit.file.Name())); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}
