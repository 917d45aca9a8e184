package cluster

import (
	"reflect"
	"testing"
)

func TestParseLastApplied(t *testing.T) {
	const osc = `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: OperatingSystemConfig
spec:
  units:
  - name: gardener-node-agent.service
    content: "[Service]"
  - name: containerd.service
    dropIns:
    - name: 10-env.conf
      content: "[Service]"
  - name: configure-containerd-registries.service
    content: "[Unit]"
  files:
  - path: /opt/bin/configure-containerd-registries.sh
  - path: /opt/bin/../../etc/passwd
  - path: /etc/containerd/config.toml
  - path: /etc/systemd/system/other.service.d/x.conf
status:
  extensionUnits:
  - name: configure-containerd-registries.service
  extensionFiles:
  - path: /opt/bin/extra
`
	want := appliedOSC{
		units: []string{"gardener-node-agent.service", "configure-containerd-registries.service"},
		paths: []string{
			"/etc/systemd/system/gardener-node-agent.service",
			"/etc/systemd/system/containerd.service.d/10-env.conf",
			"/etc/systemd/system/configure-containerd-registries.service",
			"/opt/bin/configure-containerd-registries.sh",
			"/etc/systemd/system/other.service.d/x.conf",
			"/opt/bin/extra",
		},
	}
	got, err := parseLastApplied([]byte(osc))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := parseLastApplied([]byte("\t")); err == nil {
		t.Error("no error for invalid YAML")
	}
}
