package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// requestLimits bound the requests to the API server of the seed. Nobody else sets them: the extension library leaves them
// at zero, which client-go takes for 5 requests a second, and hundreds of Shoots then wait for each other.
type requestLimits struct {
	qps   float32
	burst int
}

// AddFlags implements the extension library's Option. The present values are the defaults.
func (l *requestLimits) AddFlags(flags *pflag.FlagSet) {
	flags.Float32Var(&l.qps, "kube-api-qps", l.qps, "Requests a second to the API server of the seed.")
	flags.IntVar(&l.burst, "kube-api-burst", l.burst, "Requests to the API server of the seed that may be sent at once.")
}

// Complete implements the extension library's Option.
func (l *requestLimits) Complete() error {
	if l.qps <= 0 || l.burst <= 0 {
		return fmt.Errorf("--kube-api-qps is %g and --kube-api-burst is %d, both must be above 0", l.qps, l.burst)
	}
	return nil
}

// applyTo returns the config with the limits set.
func (l *requestLimits) applyTo(config *rest.Config) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.QPS, limited.Burst = l.qps, l.burst
	return limited
}
