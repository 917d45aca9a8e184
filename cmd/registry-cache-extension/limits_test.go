package main

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

func TestRequestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		qps   float32
		burst int
		fails bool
	}{
		"default":  {nil, 100, 130, false},
		"set":      {[]string{"--kube-api-qps=0.5", "--kube-api-burst=2"}, 0.5, 2, false},
		"no qps":   {[]string{"--kube-api-qps=0"}, 0, 0, true},
		"no burst": {[]string{"--kube-api-burst=-1"}, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			limits := newOptions().limits
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			limits.AddFlags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			if err := limits.Complete(); (err != nil) != test.fails {
				t.Fatalf("error = %v, want one: %t", err, test.fails)
			}
			if test.fails {
				return
			}
			original := &rest.Config{Host: "https://seed.test"}
			got := limits.applyTo(original)
			if got.QPS != test.qps || got.Burst != test.burst || got.Host != original.Host {
				t.Errorf("limits = %g and %d, want %g and %d", got.QPS, got.Burst, test.qps, test.burst)
			}
			if original.QPS != 0 {
				t.Error("the passed config was changed")
			}
		})
	}
}
