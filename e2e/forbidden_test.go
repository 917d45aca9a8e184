//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// plantedAgent is the user agent of requests of plantForbidden.
const plantedAgent = "e2e-planted"

// forbidden proves that the chart grants all permissions that the extension needs: the seed's API
// server forbade none of its requests in the whole run. This scenario runs last.
func forbidden() rig.Scenario {
	var account string
	return rig.New("forbidden",
		rig.Prove("the audit log shows a forbidden request of the extension", func(ctx context.Context, p *rig.Run) {
			account = extensionAccount(ctx, p)
			plantForbidden(ctx, p, account)
		}),
		rig.Prove("no other request has been forbidden since the testbed was set up", func(ctx context.Context, p *rig.Run) {
			requireNoneForbidden(ctx, p, account)
		}),
	)
}

// requireNoneForbidden fails unless the audit log contains requests of each account since the run
// began, and no forbidden request but the planted ones.
func requireNoneForbidden(ctx context.Context, p *rig.Run, accounts ...string) {
	p.Helper()
	events, err := p.Session.Testbed.Seed.AuditLog(ctx)
	p.Check(err)
	allowed, forbidden := map[string]int{}, map[string]int{}
	for _, event := range events {
		switch {
		case event.UserAgent == plantedAgent || event.RequestReceivedTimestamp.Time.Before(p.Session.Start):
		case isForbidden(event):
			forbidden[event.User.Username+": "+request(event)]++
		default:
			allowed[event.User.Username]++
		}
	}
	for _, account := range accounts {
		if allowed[account] == 0 {
			p.Fatalf("the log contains no request of %s, so this proves nothing", account)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(forbidden)) {
		p.Errorf("forbidden %d times: %s", forbidden[what], what)
	}
	if p.Failed() {
		p.FailNow()
	}
	for _, account := range accounts {
		p.Evidence("%d requests of %s, none forbidden", allowed[account], account)
	}
}

// isForbidden reports whether the API server denied the request.
func isForbidden(event auditv1.Event) bool {
	return event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden
}

// request returns a description of an audit event's request.
func request(event auditv1.Event) string {
	object := event.ObjectRef
	if object == nil {
		return event.Verb + " " + event.RequestURI
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s/%s %s/%s", event.Verb, object.Resource, object.APIGroup, object.Subresource, object.Namespace, object.Name))
}

// extensionAccount returns the user name of the service account that the extension runs as.
func extensionAccount(ctx context.Context, p *rig.Run) string {
	p.Helper()
	return serviceaccount.MakeUsername(p.ExtensionNamespace(ctx), deploymentOfExtension(ctx, p).Spec.Template.Spec.ServiceAccountName)
}

// plantForbidden sends, with the account's identity, a request that the API server must forbid, and
// waits until it is in the audit log. So are all requests before it.
func plantForbidden(ctx context.Context, p *rig.Run, account string) {
	p.Helper()
	namespace, name, err := serviceaccount.SplitUsername(account)
	p.Check(err)
	token, err := tokenOf(ctx, p.Session.Seed, namespace, name)
	p.Check(err)
	config := rest.AnonymousClientConfig(p.Session.Seed.Config)
	config.BearerToken, config.UserAgent = token, plantedAgent
	planted, err := client.New(config, client.Options{Scheme: p.Session.Seed.Scheme()})
	p.Check(err)
	if err := planted.List(ctx, &corev1.NodeList{}); !apierrors.IsForbidden(err) {
		p.Fatalf("%s may list the nodes of the seed: %v", account, err)
	}
	p.Await(ctx, "the planted request is in the audit log", 15*time.Second, func(ctx context.Context) (bool, string, error) {
		events, err := p.Session.Testbed.Seed.AuditLog(ctx)
		found := slices.ContainsFunc(events, func(e auditv1.Event) bool {
			return isForbidden(e) && e.UserAgent == plantedAgent && e.User.Username == account
		})
		return found, fmt.Sprintf("%d events", len(events)), err
	})
}

// tokenOf returns a token of a ServiceAccount, which expires after an hour.
func tokenOf(ctx context.Context, cluster client.Client, namespace, account string) (string, error) {
	request := &authenticationv1.TokenRequest{}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := cluster.SubResource("token").Create(ctx, owner, request); err != nil {
		return "", fmt.Errorf("request a token of %s: %w", client.ObjectKeyFromObject(owner), err)
	}
	return request.Status.Token, nil
}
