package plantedbugs

import "slices"

// All returns the planted bugs. The bugs that cost the most to recover from come last.
func All() []Mutant { return slices.Concat(webhookAndTestbed(), nodes(), cache(), controller()) }

func webhookAndTestbed() []Mutant {
	return []Mutant{
		{
			Name: "other-purpose", File: "webhook/operatingsystemconfig/handler.go", Scenarios: []string{"webhook-scope"},
			Line: `if osc.Metadata.DeletionTimestamp != nil || ` +
				`osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {`,
			Replacement: `if osc.Metadata.DeletionTimestamp != nil {`,
			Bug:         "script and unit are also added to the OperatingSystemConfig that new machines boot with",
			Words:       `an OSC of purpose provision is not changed: the OSC was changed`,
		},
		{
			Name: "no-namespace-selector", File: "webhook/operatingsystemconfig/handler.go", Scenarios: []string{"webhook-scope"},
			Line:        `NamespaceSelector: extensionswebhook.BuildExtensionTypeNamespaceSelector(v1alpha3.ExtensionType, nil),`,
			Replacement: `NamespaceSelector: extensionswebhook.Webhook{Name: v1alpha3.ExtensionType}.NamespaceSelector,`, // equals nil
			Bug:         "without the label selector the webhook is called for Shoots that do not use the extension, and blocks them",
			Words:       `an OSC in an unlabelled namespace is not changed: admission webhook`,
		},
		{
			Name: "wrong-endpoint", File: "webhook/operatingsystemconfig/handler.go", Scenarios: []string{"two-upstreams"},
			Line:        `Endpoint:    cache.Endpoint,`,
			Replacement: `Endpoint:    status.Caches[0].Endpoint,`,
			Bug:         "the hosts.toml of every upstream has the cache of the first upstream",
			Words:       `every worker has a hosts.toml for each of`,
		},
		{
			Name: "hit-as-miss", File: "kind/pull/attribute.go", Scenarios: []string{"pull-report"},
			Line:        `served.By = CacheHit`,
			Replacement: `served.By = CacheMiss`,
			Bug:         "the testbed counts objects from the store of a cache as fetched from the upstream",
			Words:       `served by "cache miss", want "cache hit"`,
		},
	}
}

func nodes() []Mutant {
	return []Mutant{
		{
			Name: "not-atomic", File: "nodeconfig/configure-containerd-registries.sh", Scenarios: []string{"hosts-file"},
			Line:        `mkdir -p -- "${1%/*}" && ! is_foreign "$1" && mv -f -T -- "$temp" "$1"; then`,
			Replacement: `mkdir -p -- "${1%/*}" && ! is_foreign "$1" && cat -- "$temp" >"$1" && rm -f -- "$temp"; then`,
			Bug:         "hosts.toml is written in place: containerd can read a partial file",
			Words:       `a changed file is replaced atomically: hosts.toml was written in place`,
		},
		{
			Name: "no-server-line", File: "nodeconfig/configure-containerd-registries.sh", Scenarios: []string{"hosts-file"},
			Line:        `printf '%s\n' "server = \"$2\"" ${4:+"$ca_line"}`,
			Replacement: `[[ -z $4 ]] || printf '%s\n' "$ca_line"`,
			Bug:         "hosts.toml does not have the URL of the upstream: without the cache, containerd guesses https://<host>",
			Words:       `past the cache a node asks the upstream where hosts.toml says it is: the node asked https`,
		},
		{
			Name: "no-dial-timeout", File: "nodeconfig/configure-containerd-registries.sh", Scenarios: []string{"cache-down"},
			Line:        `'  dial_timeout = "500ms"' ${3:+"  $ca_line"}`,
			Replacement: `${3:+"  $ca_line"}`,
			Bug:         "each request to a cache whose packets are dropped takes 30 s (containerd#4861)",
			Words:       `a pull past a cache that drops packets is about as quick: `,
		},
		{
			Name: "never-direct", File: "nodeconfig/configure-containerd-registries.sh", Scenarios: []string{"cache-down"},
			Line:        `declare -rA needed=([direct]=2 [mirror]=3) # answers in a row that change the state`,
			Replacement: `declare -rA needed=([direct]=999999 [mirror]=3)`,
			Bug:         "nodes go on asking a cache that fails: each request of a pull waits for it",
			Words:       `nodes notice that it is down, and pull directly: `,
		},
		{
			Name: "never-mirror", File: "nodeconfig/configure-containerd-registries.sh", Scenarios: []string{"cache-down"},
			Line:        `declare -rA needed=([direct]=2 [mirror]=3) # answers in a row that change the state`,
			Replacement: `declare -rA needed=([direct]=2 [mirror]=999999)`,
			Bug:         "nodes never ask a cache again that failed once",
			Words:       `every worker has a hosts.toml for each of`, // in the first step, if a cache has just restarted
		},
	}
}

func cache() []Mutant {
	return []Mutant{
		{
			Name: "credentials-elsewhere", File: "registry/upstream/authenticator.go", Scenarios: []string{"registries-realm"},
			Line:        `withheld := password != "" && !a.trusts(realm)`,
			Replacement: `withheld := false`,
			Bug:         "a cache sends its user name and password to any token server that the upstream names (CVE-2026-33540)",
			Words:       `a token server of another domain gets no credentials: private.elsewhere.test got the credentials`,
		},
		{
			Name: "refused-as-stale", File: "registry/cache/manifest.go", Scenarios: []string{"registries-refused"},
			Line:        `if refused, ok := errors.AsType[*upstream.RefusedError](err); ok {`,
			Replacement: `if refused, ok := errors.AsType[*upstream.RefusedError](err); ok && refused.Status == http.StatusNotFound {`,
			Bug:         "a tag that the upstream refuses is served as it was last confirmed",
			Words:       `a tag that the upstream refuses is refused: waited up to 10s until the cache answers 403`,
		},
		{
			Name: "damaged-range", File: "registry/cache/blob.go", Scenarios: []string{"registries-range"},
			Line:        `if late || errors.Is(err, errUnstored) || errors.Is(err, errAbandoned) || store.IsSlow(err) {`,
			Replacement: `if late || err != nil && !isWhole(q.Range) {`,
			Bug:         "a range of a damaged blob is served as a complete answer",
			Words:       `no complete answer is damaged: damaged bytes came as a complete answer: 206 0 different`,
		},
	}
}

func controller() []Mutant {
	return []Mutant{
		{
			Name: "volume-lost", File: "controller/volume/claim.go", Scenarios: []string{"grow-volume"},
			Line:        `if err := shoot.Patch(ctx, grown, client.MergeFrom(c.PersistentVolumeClaim), options...); err != nil {`,
			Replacement: `if err := shoot.Delete(ctx, grown); err != nil {`,
			Bug:         "a volume is deleted instead of resized, with all content of the cache",
			Words:       `a StorageClass without expansion changes nothing: the claim of gamma`,
		},
		{
			Name: "cleaner-skipped", File: "controller/reconcile.go", Scenarios: []string{"remove-upstream"},
			Line:        `if len(removed) > 0 && nodesToClean(t.cluster) {`,
			Replacement: `if false {`,
			Bug:         "after an upstream is removed, nodes still ask its deleted cache",
			Words:       `alpha's hosts.toml is on `,
		},
		{
			Name: "cleaner-on-deletion", File: "controller/actuator.go", Scenarios: []string{"delete-shoot"},
			Line:        `return cluster.Shoot.DeletionTimestamp == nil && !extensionscontroller.IsHibernated(cluster)`,
			Replacement: `return !extensionscontroller.IsHibernated(cluster)`,
			Bug:         "the cleaner blocks the deletion of a Shoot, which has no nodes any more (gardener-extension-registry-cache#83)",
			Words:       `no cleaner ever existed: `,
		},
		{
			Name: "orphan-after-restore", File: "controller/volumes.go", Scenarios: []string{"migrate-removal"},
			Line:        `for _, labels := range left {`,
			Replacement: `for _, labels := range labelsOf(nil) {`,
			Bug:         "a cache that was removed while the control plane moved runs on for ever",
			Words:       `the caches of [beta.upstream.test] are rolled out`,
		},
		{
			Name: "leak-at-deletion", File: "controller/actuator.go", Scenarios: []string{"delete-claims"},
			Line:        `if !sleeps(cluster) {`,
			Replacement: `if false {`,
			Bug:         "the deletion of a Shoot goes on before the disks of its caches are deleted",
			Words:       `the Extension is gone, and claim`,
		},
	}
}
