import type { Environment } from './applications.js'

/**
 * The two clusters. Kubelink reports the workloads of one cluster in full (CLAS), and those of the other cluster in the
 * legacy mode.
 */
export const CLUSTERS = [
  { name: 'k8s-prod', env: 'prod', mode: 'clas', manager: 'Kubernetes v1.29', subnet: '10.244', online: true },
  { name: 'openshift-test', env: 'test', mode: 'legacy', manager: 'OpenShift v4.14', subnet: '10.128', online: false },
] as const satisfies readonly { env: Environment; [field: string]: unknown }[]

export interface NamespaceSeed {
  namespace: string
  app: string
  /**
   * The deployments in this namespace. A deployment with a port in `published` is also a virtual service on that port.
   */
  deployments: readonly { name: string; kind: 'Deployment' | 'StatefulSet' | 'DaemonSet'; published?: number }[]
}

/** The namespaces that exist in every Kubernetes cluster. */
export const NAMESPACES: readonly NamespaceSeed[] = [
  {
    namespace: 'web-shop',
    app: 'web-shop',
    deployments: [
      { name: 'storefront', kind: 'Deployment', published: 8080 },
      { name: 'cart', kind: 'Deployment' },
      { name: 'session-cache', kind: 'StatefulSet' },
    ],
  },
  {
    namespace: 'ordering',
    app: 'ordering',
    deployments: [
      { name: 'order-api', kind: 'Deployment', published: 8443 },
      { name: 'order-worker', kind: 'Deployment' },
    ],
  },
  {
    namespace: 'payments',
    app: 'payments',
    deployments: [
      { name: 'checkout', kind: 'Deployment' },
      { name: 'ledger-sync', kind: 'DaemonSet' },
    ],
  },
]
