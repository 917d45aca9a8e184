//go:build e2e

package e2e

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// onVolume runs a bash script on the worker that has the volume of the cache for an upstream, and
// returns its output. $1 is the folder of the volume, and $2 and so on are the arguments. The
// scenario fails if no worker has the folder.
func onVolume(ctx context.Context, p *rig.Run, host, script string, args ...string) string {
	p.Helper()
	for _, name := range p.Claims(ctx, host) {
		claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, claim))
		p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
		folder := volumeFolder(volume)
		for _, worker := range p.Workers() {
			if _, err := worker.Exec(ctx, "test", "-d", folder); err != nil {
				continue
			}
			out, err := worker.Script(ctx, script, append([]string{folder}, args...)...)
			p.Check(err)
			return strings.TrimSpace(out)
		}
	}
	p.Fatalf("no worker has the volume of %s's cache as a folder", host)
	return ""
}

// storedScript prints how many of the digests $2 and so on have a file below $1, wherever it is.
// Folders may vanish meanwhile, but not $1.
const storedScript = `folder=$1; shift
found=$(find "$folder" -ignore_readdir_race -name data -printf '%h\n' || [ -d "$folder" ])
for hex do [[ $found != *"/$hex"* ]] || echo "$hex"; done | wc -l`

// storedOnVolume returns how many of the manifests and blobs are on the volume of the upstream's
// cache. The result is also 0 for a new volume, so to prove a deletion, first prove that they were
// there.
func storedOnVolume(ctx context.Context, p *rig.Run, host string, digests ...string) int {
	p.Helper()
	var names []string
	for _, digest := range digests {
		names = append(names, hexOf(digest))
	}
	count, err := strconv.Atoi(onVolume(ctx, p, host, storedScript, names...))
	p.Check(err)
	return count
}

// volumeFolder returns the folder of a hostPath or local volume. For other volumes it returns a
// path that does not exist.
func volumeFolder(volume *corev1.PersistentVolume) string {
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return source.HostPath.Path
	case source.Local != nil:
		return source.Local.Path
	default:
		return "/no-folder"
	}
}
