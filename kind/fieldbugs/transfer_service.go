package fieldbugs

import (
	"context"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// Testbed configurations for s25, relative to the root of the repository.
const (
	localPull       = "kind/fieldbugs/testbeds/local.yaml"
	transferService = "kind/fieldbugs/testbeds/transfer.yaml"
	severalFolders  = "kind/fieldbugs/testbeds/two-folders.yaml"
)

func transfer() Bug {
	return Bug{
		ID: "s25", Slug: "transfer-service", Title: "containerd's transfer service fetches the images",
		Reports: []string{"containerd#12415", "containerd#12636", "spegel#1272"},
		Symptom: "Since containerd 2.1 nodes silently bypass the cache: the transfer service treats the default " +
			"config_path, a list, as one folder.",
		Fault: "none: settings of containerd",
		Expectation: "With one folder as config_path, as Gardener sets it, pulls use the cache. With containerd's default of " +
			"two folders they do not, and `testbed pull` reports it.",
		Bound: 6 * time.Minute,
		Reproduce: func(ctx context.Context, r *Rig) error {
			r.Afterwards(func(ctx context.Context) error { return r.up(ctx, localPull) })
			return r.transfer(ctx)
		},
	}
}

func (r *Rig) transfer(ctx context.Context) error {
	if err := r.up(ctx, transferService); err != nil {
		return err
	}
	if err := r.requireStores(ctx, "with one folder pulls go through the cache"); err != nil {
		return err
	}
	if err := r.up(ctx, severalFolders); err != nil {
		return err
	}
	img, report, err := r.pushAndPull(ctx, "alpha")
	if err != nil {
		return err
	}
	direct := BlobsBy(report, pull.FromUpstream)
	return r.Require("with two folders pulls bypass the cache, and the report shows it", report.Total.Fallbacks == 1 && direct == len(img.Objects)-1,
		"%d blobs of the upstream; %s", direct, report.Verdict)
}

func (r *Rig) up(ctx context.Context, file string) error {
	_, err := r.Testbed(ctx, "up", "-f", file)
	return err
}
