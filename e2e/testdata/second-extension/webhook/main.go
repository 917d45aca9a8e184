// Command webhook is an extension that has nothing to do with registry caches. It proves that the
// testbed brings up any extension: its webhook adds one file to OperatingSystemConfigs.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"slices"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
)

// added is the file that appears on every node of a shoot.
var added = extensionsv1alpha1.File{
	Path:    "/etc/second-extension",
	Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: "from the second extension\n"}},
}

func main() {
	server := &http.Server{Addr: ":10443", Handler: http.HandlerFunc(serve), ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServeTLS("/certificate/tls.crt", "/certificate/tls.key"))
}

func serve(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("read the request: %v", err), http.StatusBadRequest)
		return
	}
	patch, err := patchFor(review.Request.Object.Raw)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if patch != nil {
		kind := admissionv1.PatchTypeJSONPatch
		review.Response.Patch, review.Response.PatchType = patch, &kind
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		log.Printf("answer: %v", err)
	}
}

// patchFor returns the JSON patch that adds the file, or nil if there is nothing to add.
func patchFor(object []byte) ([]byte, error) {
	config := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := json.Unmarshal(object, config); err != nil {
		return nil, fmt.Errorf("decode the OperatingSystemConfig: %w", err)
	}
	has := func(file extensionsv1alpha1.File) bool { return file.Path == added.Path }
	if config.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile || config.DeletionTimestamp != nil ||
		slices.ContainsFunc(config.Spec.Files, has) {
		return nil, nil
	}
	return json.Marshal([]map[string]any{{"op": "add", "path": "/spec/files", "value": append(config.Spec.Files, added)}})
}
