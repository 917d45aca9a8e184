package diagnostics

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Cluster returns a source for one cluster: the objects that Gardener and the extension work with,
// events, and the logs of all pods. The data of Secrets is left out.
func Cluster(name string, config *rest.Config) Source {
	return clusterSource{name: name, connect: func() (clients, error) { return connect(config) }}
}

type clusterSource struct {
	name    string
	connect func() (clients, error)
}

type clients struct {
	objects dynamic.Interface
	typed   kubernetes.Interface
}

// connect limits each request to 15 seconds, so that an API server that hangs does not use up the
// time of the source.
func connect(config *rest.Config) (clients, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 15 * time.Second
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 100, 200
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	typed, err := kubernetes.NewForConfig(config)
	return clients{objects, typed}, err
}

func (c clusterSource) Name() string { return c.name }

func (c clusterSource) Collect(ctx context.Context, into *Folder) {
	to, err := c.connect()
	if err != nil {
		into.Fail("", err)
		return
	}
	collectEvents(ctx, to.typed, into)
	for _, resource := range resources {
		collectObjects(ctx, to.objects, resource, into)
	}
	collectLogs(ctx, to.typed, into)
}
