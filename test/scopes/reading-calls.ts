/** Calls of every tool that reads from a PCE, and what becomes of them for a reader of `app=payments`. */
import { LABEL } from './limited-estate.js'

const WEEK = { start_date: '2026-06-08', end_date: '2026-06-14' }
const OURS = { app_name: 'payments', env_name: 'prod' }
const THEIRS = { app_name: LABEL, env_name: 'prod' }
const PORT = { port: 5432, proto: 'tcp' }

export interface ReadingCall {
  args: object
  /** The error for the limited reader; an answer if absent. */
  error?: 'out_of_scope' | 'not_found'
  /** True if what everybody is answered is about nothing outside, so that it cannot have the marks. */
  plain?: true
  /** True if labels, which have no scope, are part of the answer. */
  labels?: true
}

const plain = (args: object = {}): ReadingCall => ({ args, plain: true })
/** What is refused may name the label that its caller wrote. */
const refused = (args: object = {}): ReadingCall => ({ args, error: 'out_of_scope', labels: true })

export const READING: Readonly<Record<string, readonly ReadingCall[]>> = {
  'check-pce-connection': [plain()],
  'compare-draft-active': [{ args: {} }],
  'compare-policy-versions': [refused({ from: 'active', to: 'draft' })],
  'compare-traffic': [{ args: {} }],
  'compliance-check': [
    plain({ framework: 'pci-dss', ...OURS, ...WEEK }),
    refused({ framework: 'pci-dss', ...THEIRS, ...WEEK }),
    refused({ framework: 'general', ...WEEK }),
  ],
  'detect-lateral-movement-paths': [{ ...refused({ ...OURS, ...WEEK }), plain: true }],
  'discover-process-egress': [{ args: WEEK }],
  'enforcement-readiness': [plain({ ...OURS, ...WEEK }), refused({ ...THEIRS, ...WEEK })],
  'explain-flow': [
    plain({ source: 'app=crm', destination: 'workload:pay1', ...PORT }),
    { args: { source: '10.66.0.1', destination: 'workload:pay1', ...PORT }, labels: true },
    { args: { source: 'workload:FOREIGN-web', destination: 'workload:FOREIGN-db', ...PORT }, error: 'not_found' },
    refused({ source: '10.66.0.1', destination: '10.66.0.2', ...PORT }),
    refused({ source: `app=${LABEL}`, destination: `app=${LABEL}`, ...PORT }),
  ],
  'exposure-report': [{ ...refused(WEEK), plain: true }],
  'find-duplicate-workloads': [plain(WEEK)],
  'find-listeners': [plain({ labels: ['app=payments'], ...WEEK })],
  'find-redundant-rules': [{ ...refused(), plain: true }],
  'find-rules': [{ args: {}, labels: true }],
  'find-stale-vens': [refused()],
  'find-unlabelled-workloads': [{ args: { missing: ['role'] } }],
  'find-unmanaged-traffic': [{ args: WEEK }],
  'find-unused': [{ ...refused(), plain: true }],
  'get-compatibility-reports': [{ ...refused(), plain: true }],
  'get-container-clusters': [{ args: {} }],
  'get-container-workload-profiles': [{ args: { cluster_href: '/orgs/1/container_clusters/c' } }],
  'get-events': [refused()],
  'get-ip-list-matches': [plain({ address: '192.0.2.7' })],
  'get-iplists': [plain()],
  'get-kubernetes-workloads': [{ args: {} }],
  'get-label-groups': [plain()],
  'get-labels': [{ args: {}, labels: true }],
  'get-pairing-profiles': [plain()],
  'get-policy-coverage-report': [plain({ ...OURS, ...WEEK }), refused({ ...THEIRS, ...WEEK })],
  'get-rulesets': [{ args: {}, labels: true }, { args: { name: 'FOREIGN set' } }],
  'get-services': [plain()],
  'get-traffic-flows': [{ args: WEEK }],
  'get-traffic-flows-summary': [{ args: WEEK }],
  'get-vens': [{ args: {} }],
  'get-virtual-services': [{ args: {} }],
  'get-workload-enforcement-status': [{ args: {} }],
  'get-workloads': [{ args: {} }, { args: { name: 'FOREIGN-web' } }, { args: { labels: [`app=${LABEL}`] } }],
  'identify-infrastructure-services': [plain(WEEK)],
  'identity-reach': [plain(WEEK)],
  'list-policy-versions': [{ ...refused(), plain: true }],
  'preview-enforcement-change': [
    plain({ ...OURS, ...WEEK, enforcement_mode: 'full' }),
    refused({ ...THEIRS, ...WEEK, enforcement_mode: 'full' }),
    refused({
      workloads: ['/orgs/1/workloads/00000000-0000-4000-8000-000000000005'],
      ...WEEK,
      enforcement_mode: 'full',
    }),
  ],
  'resolve-policy': [
    plain({ application: 'payments|prod' }),
    refused({ application: `${LABEL}|prod` }),
    refused({ rule_set: 'FOREIGN set' }),
  ],
  'review-draft': [{ args: {} }],
  'suggest-rule': [
    plain({ source: 'app=crm', destination: 'app=payments', port: 8443, proto: 'tcp' }),
    refused({ source: `app=${LABEL}`, destination: `app=${LABEL}`, port: 8443, proto: 'tcp' }),
  ],
  'ven-health-report': [{ args: {} }],
  'who-changed': [refused({ kind: 'rule_set', name: 'FOREIGN set' })],
}
