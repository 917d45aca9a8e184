package controller

import (
	"bytes"
	"fmt"

	"github.com/andybalholm/brotli"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
)

var (
	shootEncoder = newEncoder(kubernetes.ShootScheme, kubernetes.ShootCodec)
	seedEncoder  = newEncoder(kubernetes.SeedScheme, kubernetes.SeedCodec)
	// compression needs about 200 KiB of memory. The default, which managedresources.Registry uses,
	// needs 6 MiB for a few KiB of data: most of what a reconciliation allocated.
	compression = brotli.WriterOptions{Quality: 4, LGWin: 16}
)

func newEncoder(scheme *runtime.Scheme, codecs serializer.CodecFactory) runtime.Encoder {
	return codecs.EncoderForVersion(
		json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}), schema.GroupVersions(scheme.PrioritizedVersionsAllGroups()))
}

// encodeManifests returns the data of a ManagedResource's Secret: one JSON document per object, in
// their order, compressed with Brotli. JSON is also YAML. The same objects give the same bytes.
func encodeManifests(encoder runtime.Encoder, objects []client.Object) (map[string][]byte, error) {
	var data bytes.Buffer
	writer := brotli.NewWriterOptions(&data, compression)
	for _, object := range objects {
		// The separator also comes first. A reader that sees a brace first parses everything as JSON.
		if _, err := writer.Write([]byte("---\n")); err != nil {
			return nil, err
		}
		if err := encoder.Encode(object, writer); err != nil {
			return nil, fmt.Errorf("encoding %T %s: %w", object, object.GetName(), err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return map[string][]byte{resourcesv1alpha1.CompressedDataKey: data.Bytes()}, nil
}
