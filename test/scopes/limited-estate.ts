/**
 * An estate of which a reader of `app=payments` sees a part. Everything without an end inside has the word `FOREIGN` in
 * its name, and the label of its application is `outland`.
 */
import type { Estate } from '../../pce-simulator/model.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { handMade } from '../tools/hand-made.js'

export const MARK = 'FOREIGN'
export const LABEL = 'outland'

export function limitedEstate(): Estate {
  const estate = handMade({
    hosts: {
      pay1: { ip: '10.0.0.1', labels: 'role=web app=payments env=prod loc=ams' },
      pay2: { ip: '10.0.0.2', labels: 'role=db app=payments env=prod loc=ams', mode: 'full' },
      peer: { ip: '10.0.0.3', labels: 'role=web app=crm env=prod loc=ams' },
      'FOREIGN-web': { ip: '10.66.0.1', labels: `role=web app=${LABEL} env=prod loc=ams`, mode: 'full' },
      'FOREIGN-db': { ip: '10.66.0.2', labels: `role=db app=${LABEL} env=prod loc=ams` },
      'FOREIGN-bare': { ip: '10.66.0.3' },
      'FOREIGN-idle': { ip: '10.66.0.4', labels: `app=${LABEL} env=prod`, managed: false },
    },
    ipLists: { partners: ['192.0.2.0/24'] },
    services: { https: { service_ports: [{ port: 443, proto: 6 }] } },
    ruleSets: [
      {
        name: 'Payments',
        scope: 'app=payments env=prod',
        allow: [
          { from: 'role=web', to: 'role=db' },
          { from: 'iplist:partners', to: 'role=web' },
        ],
      },
      {
        name: 'FOREIGN set',
        scope: `app=${LABEL} env=prod`,
        allow: [
          { from: 'role=web', to: 'role=db', description: 'FOREIGN rule' },
          { from: 'any', to: 'role=web' },
        ],
      },
      {
        name: 'To the outside',
        scope: `app=${LABEL} env=prod`,
        allow: [
          { from: 'app=payments', to: 'role=web', extra: true },
          { from: 'role=web', to: 'role=web', description: 'FOREIGN rule of a set that is seen' },
        ],
      },
    ],
    flows: [
      { from: 'peer', to: 'pay1', port: 443 },
      { from: 'pay1', to: 'pay2', port: 5432, process: 'postgres' },
      { from: 'pay1', to: '198.51.100.7', port: 443, process: 'curl' },
      { from: 'FOREIGN-web', to: 'FOREIGN-db', port: 5432, process: 'FOREIGN-process' },
      { from: 'FOREIGN-web', to: '198.51.100.66', port: 8443, process: 'FOREIGN-process', fqdn: 'FOREIGN.example.com' },
      { from: '198.51.100.67', to: 'FOREIGN-web', port: 443 },
    ],
  })
  const label = (text: string) => ({ href: estate.labels.find(({ key, value }) => `${key}=${value}` === text)!.href })
  const inside = [label('app=payments'), label('env=prod')]
  const outside = [label(`app=${LABEL}`), label('env=prod')]
  const stamp = { created_at: '2026-01-10T09:00:00.000Z', updated_at: '2026-01-10T09:00:00.000Z' }
  const cluster = '/orgs/1/container_clusters/c'
  const profileOf = (at: number) => `${cluster}/container_workload_profiles/p${at}`
  const both = (make: (name: string, labels: { href: string }[], at: number) => object): PceObject[] => [
    make('ours', inside, 1) as PceObject,
    make('FOREIGN', outside, 2) as PceObject,
  ]
  return {
    ...estate,
    inventory: {
      container_clusters: [
        { href: cluster, name: 'cluster', nodes: [{ name: 'FOREIGN-node' }], ...stamp } as PceObject,
      ],
      kubernetes_workloads: both((name, labels, at) => ({
        href: `/orgs/1/kubernetes_workloads/00000000-0000-4000-8000-00000000000${at}`,
        name: `${name}-pod`,
        namespace: name,
        kind: 'Deployment',
        container_cluster: { href: cluster, name: 'cluster' },
        container_workload_profile: { href: profileOf(at) },
        enforcement_mode: 'visibility_only',
        labels,
        ...stamp,
      })),
      container_workload_profiles: both((name, labels, at) => ({
        href: profileOf(at),
        name: `${name}-profile`,
        namespace: name,
        managed: true,
        labels: labels.map((assignment, which) => ({ key: ['app', 'env'][which], assignment })),
        enforcement_mode: 'visibility_only',
        visibility_level: 'flow_summary',
        linked: true,
        description: null,
        ...stamp,
      })),
    },
  }
}

/** The virtual services that the calls of a test create. */
export const SERVICES = [
  { name: 'ours-service', labels: ['app=payments', 'env=prod'], service_ports: [{ port: 443, proto: 'tcp' }] },
  { name: 'FOREIGN-service', labels: [`app=${LABEL}`, 'env=prod'], service_ports: [{ port: 443, proto: 'tcp' }] },
]
