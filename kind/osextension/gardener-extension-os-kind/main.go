// Command gardener-extension-os-kind runs package osextension in a pod of the testbed's seed.
package main

import (
	"fmt"
	"os"

	"github.com/gardener/gardener/pkg/logger"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/gardener-extensions/registry-cache/kind/osextension"
)

func main() {
	logf.SetLogger(logger.MustNewZapLogger(logger.InfoLevel, logger.FormatText))
	log := logf.Log.WithName("gardener-extension-os-kind")
	restConfig, err := config.GetConfig()
	if err == nil {
		err = osextension.Run(signals.SetupSignalHandler(), restConfig, fmt.Sprintf(":%d", osextension.HealthPort))
	}
	if err != nil {
		log.Error(err, "Cannot run")
		os.Exit(1)
	}
}
