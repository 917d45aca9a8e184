//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/gardener-extensions/registry-cache/cachetest/fieldbugs"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

var (
	testenv env.Environment
	suite   *rig.Session
	full    bool // the lane is the full one
)

// onShoot returns the scenarios on the testbed's shoot in the order in which they run. Each
// scenario leaves the shoot close to the starting state of the next one. Scenarios that delete the
// shoot or its machines come last.
func onShoot() []rig.Scenario {
	return []rig.Scenario{
		pullThrough(),
		twoUpstreams(),
		damagedBlobs(),
		cacheDown(),
		upstreamDown(),
		growVolume(),
		garbageCollection(),
		removeUpstream(),
		unmanagedService(),
		disableExtension(),
		notReady(),
		credentials(),
		privateCA(),
		proxied(),
		stockImage(),
		tlsOn(),
		caRotation(),
		tlsFlip(),
		join(),
		highAvailability(),
		serviceName(),
		dryRun(),
		webhookScope(),
		interrupted(),
		upgrade(),
		migrate(),
		lostVolume(),
		hibernate(),
		deleteShoot(),
		createdHibernated(),
	}
}

// onShootInLane returns the scenarios on the shoot that can run: those of onShoot, those of the
// full lane if it is selected, and, if RUN is set, those that take too long for a lane. For the
// testbed with the second extension it adds that extension's scenario.
func onShootInLane() []rig.Scenario {
	all := onShoot()
	if full {
		all = append(all, volumeFull(), sharedLayer(), stateLost(), thunderingHerd(), rateLimit(), downloadBreaks())
		all = append(all, volumeUnbound(), addressChanges(), recycledAddress(), frozenClients(), upstreamNames(), transferService())
		all = append(all, nodeJoins(), wakeUpStorm())
		all = append(all, hostsFile(), pullReport(), innerLoop(), failover())
		all = append(all, linkedHosts(), busyCache(), migrateRemoval(), deleteClaims())
		all = append(all, takeoverHTTPS(), takeoverHTTP(), takeoverHA(), takeoverRemoval(), takeoverDisabled(), takeoverHibernated(), takeoverBack())
		all = append(all, registries(), registriesECR(), registriesRealm(), registriesRefused(), registriesRange())
	}
	if os.Getenv("RUN") != "" {
		all = append(all, failoverMidway(), failoverOld(), soak())
	}
	if onSecondExtension() {
		all = append(all, secondExtension())
	}
	if withGarden() {
		all = append(all, onGarden()...)
	}
	return all
}

// onWholeRun returns the scenarios that check effects of all other scenarios.
func onWholeRun() []rig.Scenario {
	return []rig.Scenario{forbidden()}
}

func scenarios() []rig.Scenario {
	return append(onShootInLane(), onWholeRun()...)
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// TestScenarios runs onShootInLane, then onWholeRun.
func TestScenarios(t *testing.T) {
	testenv.Test(t, suite.Features(onShootInLane()...)...)
	testenv.Test(t, suite.Features(onWholeRun()...)...)
}

// run runs the scenarios and returns the exit code. After a usage error it writes no results.
func run(m *testing.M) int {
	cfg, err := configuration()
	if err == nil && (flag.Lookup("test.list").Value.String() != "" || cfg.DryRunMode()) {
		testenv, suite = env.NewWithConfig(cfg), &rig.Session{Full: full}
		return m.Run()
	}
	if err == nil && os.Getenv("LIST") != "" {
		for _, scenario := range scenarios() {
			fmt.Println(scenario.Name())
		}
		return program.ExitFine
	}
	// The logs of client-go and e2e-framework repeat the errors that these packages return.
	klog.SetLogger(logr.Discard())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)

	if err == nil {
		suite, err = rig.NewSession(ctx)
	}
	if err == nil {
		suite.Full = full && os.Getenv("CONFIG") == "" // field bugs need the default testbed
		testenv, err = env.NewWithContext(ctx, cfg)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return program.ExitUsage
	}
	var cut []string
	for _, scenario := range scenarios() {
		if cfg.FeatureRegex() != nil && !cfg.FeatureRegex().MatchString(scenario.Name()) {
			continue
		}
		suite.Total++
		if full && suite.Cuts(scenario) {
			cut = append(cut, scenario.Name())
		}
	}
	if len(cut) > 0 {
		fmt.Printf("CONFIG: these scenarios leave out steps that need the default testbed: %s\n", strings.Join(cut, ", "))
	}
	code := testenv.Setup(suite.Up).Finish(suite.Down).Run(m)
	return suite.Finish(ctx, code, scenarios())
}

// fullLane reports whether LANE selects the full lane. If RUN is set, the lane is the full one, so
// that RUN can match every scenario.
func fullLane() (bool, error) {
	lane := os.Getenv("LANE")
	if lane != "" && lane != "fast" && lane != "full" {
		return false, fmt.Errorf("LANE is %q, want fast or full", lane)
	}
	return lane == "full" || os.Getenv("RUN") != "", nil
}

// configuration returns e2e-framework's configuration from its flags. RUN has the same effect as
// the flag --feature, but also matches IDs of field bugs.
func configuration() (*envconf.Config, error) {
	var err error
	if full, err = fullLane(); err != nil {
		return nil, err
	}
	cfg, err := envconf.NewFromFlags()
	if err != nil {
		return nil, err
	}
	if unknown := flag.Args(); len(unknown) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", unknown[0])
	}
	if cfg.FeatureRegex() == nil && os.Getenv("RUN") != "" {
		expression, err := regexp.Compile(os.Getenv("RUN"))
		if err != nil {
			return nil, fmt.Errorf("RUN is not a regular expression: %w", err)
		}
		cfg.WithFeatureRegex(fieldbugs.WithBugs(expression))
	}
	return cfg, matchesSomething(cfg.FeatureRegex())
}

func matchesSomething(expression *regexp.Regexp) error {
	var names []string
	for _, scenario := range scenarios() {
		if expression == nil || expression.MatchString(scenario.Name()) {
			return nil
		}
		names = append(names, scenario.Name())
	}
	return fmt.Errorf("RUN=%s matches no scenario; the scenarios are: %s", expression, strings.Join(names, ", "))
}
