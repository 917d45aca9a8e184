package plantedbugs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A bug is a change that breaks something.
type bug struct {
	name   string
	effect string
	Change
	// scenario must fail. Its failure, "<step>: <message>", must contain reason: a scenario that fails
	// for another reason has not caught the bug. If reason starts with notUp, `up` must fail instead,
	// so that the scenario is skipped.
	scenario, reason string
}

// notUp begins the reason of each skipped scenario if `up` fails.
const notUp = "the testbed did not come up: "

const (
	// gardenFile is the configuration of the testbed for inGarden.
	gardenFile = "e2e/matrix/garden.yaml"

	webhook = "webhook/operatingsystemconfig/handler.go"
	script  = "nodeconfig/configure-containerd-registries.sh"
)

// bugs are planted in this order. Those from which the testbed recovers most slowly come last.
var bugs = []bug{
	{
		"other-purpose", "the script and the unit are also added to the OperatingSystemConfig that new machines boot with",
		Change{webhook, ` || osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {`, ` {`},
		"webhook-scope", "an OSC of purpose provision is not changed: the OSC was changed",
	},
	{
		"no-namespace-selector", "without the label selector the webhook is called for Shoots that do not use the extension, and blocks them",
		Change{
			webhook, `extensionswebhook.BuildExtensionTypeNamespaceSelector(v1alpha3.ExtensionType, nil)`,
			`extensionswebhook.Webhook{Name: v1alpha3.ExtensionType}.NamespaceSelector`, // equals nil
		},
		"webhook-scope", "an OSC in an unlabelled namespace is not changed: admission webhook",
	},
	{
		"wrong-endpoint", "the hosts.toml of every upstream names the cache of the first upstream",
		Change{webhook, `Endpoint:    cache.Endpoint,`, `Endpoint:    status.Caches[0].Endpoint,`},
		"two-upstreams", "every worker has a hosts.toml for each of",
	},
	{
		"hit-as-miss", "the testbed counts objects from the store of a cache as fetched from the upstream",
		Change{"cachetest/pull/attribute.go", `served.By = CacheHit`, `served.By = CacheMiss`},
		"pull-report", `served by "cache miss", want "cache hit"`,
	},
	{
		"not-atomic", "hosts.toml is written in place: containerd can read a partial file",
		Change{script, `mv -f -T -- "$temp" "$1"; then`, `cat -- "$temp" >"$1" && rm -f -- "$temp"; then`},
		"hosts-file", "a changed file is replaced atomically: hosts.toml was written in place",
	},
	{
		"no-server-line", "hosts.toml does not contain the URL of the upstream: without the cache, containerd guesses https://<host>",
		Change{script, `printf '%s\n' "server = \"$2\"" ${4:+"$ca_line"}`, `[[ -z $4 ]] || printf '%s\n' "$ca_line"`},
		"hosts-file", "past the cache a node asks the upstream where hosts.toml says it is: the node asked https",
	},
	{
		"no-dial-timeout", "each request to a cache whose packets are dropped takes 30 s (containerd#4861)",
		Change{script, `'  dial_timeout = "500ms"' `, ``},
		"cache-down", "a pull past a cache that drops packets is about as quick: ",
	},
	{
		"never-direct", "nodes continue to ask a cache that fails: each request of a pull waits for it",
		Change{script, `[direct]=2`, `[direct]=999999`},
		"cache-down", "nodes notice that it is down, and pull directly: ",
	},
	{
		"never-mirror", "after one failure of a cache, nodes never ask it again",
		Change{script, `[mirror]=3`, `[mirror]=999999`},
		"cache-down", "every worker has a hosts.toml for each of", // in the first step, if a cache has just restarted
	},
	{
		"credentials-elsewhere", "a cache sends its user name and password to any token server that the upstream names (CVE-2026-33540)",
		Change{"registry/upstream/authenticator.go", `withheld := password != "" && !a.trusts(realm)`, `withheld := false`},
		"registries-realm", "a token server of another domain gets no credentials: private.elsewhere.test got the credentials",
	},
	{
		"refused-as-stale", "the cache serves its stored copy of a tag that the upstream refuses",
		Change{
			"registry/cache/tag.go", `if refused, ok := errors.AsType[*upstream.RefusedError](err); ok {`,
			`if refused, ok := errors.AsType[*upstream.RefusedError](err); ok && refused.Status == 404 {`,
		},
		"registries-refused", "a tag that the upstream refuses is refused: waited up to 10s until the cache answers 403",
	},
	{
		"damaged-range", "a range of a damaged blob is served as a complete answer",
		Change{
			"registry/cache/blob.go", `if late || errors.Is(err, errUnstored) || errors.Is(err, errAbandoned) || store.IsSlow(err) {`,
			`if late || err != nil && !isWhole(q.Range) {`,
		},
		"registries-range", "no complete answer is damaged: damaged bytes came as a complete answer: 206 0 different",
	},
	{
		"volume-lost", "a volume is deleted, with all its content, instead of resized",
		Change{
			"controller/volume/claim.go", `shoot.Patch(ctx, grown, client.MergeFrom(c.PersistentVolumeClaim), options...)`,
			`shoot.Delete(ctx, grown)`,
		},
		"grow-volume", "a StorageClass without expansion changes nothing: the claim of gamma",
	},
	{
		"cleaner-skipped", "after an upstream is removed, nodes still ask its deleted cache",
		Change{"controller/reconcile.go", `if len(removed) > 0 && nodesToClean(t.cluster) {`, `if false {`},
		"remove-upstream", "alpha's hosts.toml is on ",
	},
	{
		"cleaner-on-deletion",
		"the cleaner blocks the deletion of a Shoot whose nodes are already gone (gardener-extension-registry-cache#83)",
		Change{"controller/actuator.go", `cluster.Shoot.DeletionTimestamp == nil && !extensionscontroller`, `!extensionscontroller`},
		"delete-shoot", "no cleaner ever existed: ",
	},
	{
		"orphan-after-restore", "a cache that was removed while the control plane moved keeps running",
		Change{"controller/leftovers.go", `range left {`, `range labelsOf(nil) {`},
		"migrate-removal", "the caches of [beta.upstream.test] are rolled out",
	},
	{
		"leak-at-deletion", "the deletion of a Shoot does not wait until the disks of its caches are deleted",
		Change{"controller/actuator.go", `if !sleeps(cluster) {`, `if false {`},
		"delete-claims", "the Extension is gone, and claim",
	},
}

// inGarden are planted after bugs, in a testbed with a garden.
var inGarden = []bug{
	{
		"no-resources", "the ControllerRegistration handles no resource: no Shoot gets an Extension, and Gardener never installs the extension",
		Change{
			"examples/controller-registration.yaml", `  resources:
  - kind: Extension
    type: registry-cache
    # Caches run on the nodes of the Shoot.
    workerlessSupported: false
    lifecycle:
      # The extension needs Services in the Shoot for the caches' endpoints, which the later OperatingSystemConfig contains.
      reconcile: AfterKubeAPIServer
      # The ManagedResources are deleted while the API server of the Shoot still runs.
      delete: BeforeKubeAPIServer
      migrate: BeforeKubeAPIServer
`, `  resources: []
`,
		},
		"pull-through", notUp + "not all required extensions are ready after 1m0s: retry failed with context deadline exceeded, " +
			"last error: extension controllers missing or unready: map[Extension/registry-cache",
	},
}

// overlay writes the changed file to the folder and returns the path of a file for go's flag
// -overlay. Both root and folder are absolute paths.
func (c Change) overlay(root, folder string) (string, error) {
	changed, err := c.Apply(root)
	if err != nil {
		return "", err
	}
	file, overlay := filepath.Join(folder, filepath.Base(c.File)), filepath.Join(folder, "overlay.json")
	content, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, c.File): file}})
	if err != nil {
		return "", fmt.Errorf("describe the overlay: %w", err)
	}
	for path, content := range map[string]string{file: changed, overlay: string(content)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("write the overlay: %w", err)
		}
	}
	return overlay, nil
}
