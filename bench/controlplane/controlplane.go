package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startTimeout is for a machine that is busy with other things.
	startTimeout = 2 * time.Minute
	stopTimeout  = 30 * time.Second
	// auditFileMegabytes keeps kube-apiserver from starting a second file.
	auditFileMegabytes = "100000"
)

// Programs are the paths of the binaries.
type Programs struct {
	KubeAPIServer, Etcd string
}

// ControlPlane is a running API server. It has no controllers, and its etcd does not wait for the disk.
type ControlPlane struct {
	environment *envtest.Environment
	admin       *rest.Config
	audit       string
}

// Start runs an API server whose audit log, a new file in the folder, records the requests of the users with the audited
// names but those for Leases, and no others. Stop it, also when the context of the caller ended.
func Start(programs Programs, folder string, audited ...string) (*ControlPlane, error) {
	policy := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy(audited)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	c := &ControlPlane{environment: &envtest.Environment{}, audit: filepath.Join(folder, "audit.log")}
	c.environment.ControlPlaneStartTimeout = startTimeout
	c.environment.ControlPlaneStopTimeout = stopTimeout
	c.environment.ControlPlane.Etcd = &envtest.Etcd{Path: programs.Etcd}
	server := c.environment.ControlPlane.GetAPIServer()
	server.Path = programs.KubeAPIServer
	server.Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", c.audit).
		Set("audit-log-mode", "blocking"). // an event is in the file soon after its response was sent
		Set("audit-log-maxsize", auditFileMegabytes)
	var err error
	if c.admin, err = c.environment.Start(); err != nil {
		return nil, fmt.Errorf("starting %s with %s: %w", programs.KubeAPIServer, programs.Etcd, err)
	}
	return c, nil
}

// Admin returns the access of a user who may do everything and is not slowed down.
func (c *ControlPlane) Admin() *rest.Config {
	config := rest.CopyConfig(c.admin)
	config.QPS = -1
	return config
}

// Kubeconfig returns a kubeconfig with a client certificate for a new user.
func (c *ControlPlane) Kubeconfig(name string, groups ...string) ([]byte, error) {
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

// AuditLog is the path of the audit log; there is no such file before the first request of an audited user.
func (c *ControlPlane) AuditLog() string { return c.audit }

// Stop ends both processes and removes their files. The audit log stays.
func (c *ControlPlane) Stop() error {
	if err := c.environment.Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return nil
}
