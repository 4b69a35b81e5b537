/** A document whose text is in `documents/<path>.md`. */
export interface Document {
  uri: string
  name: string
  /** A description of the document in one sentence, for the list of resources. */
  description: string
}

export const SCHEME = 'illumio://'
export const CHANGELOG_URI = `${SCHEME}changelog`

const document = (path: string, name: string, description: string): Document => ({
  uri: `${SCHEME}${path}`,
  name,
  description,
})

/** All documents, in the order in which they are listed. */
export const DOCUMENTS: readonly Document[] = [
  document(
    'concepts/rule-processing',
    'Rule processing order',
    'The five steps that decide a connection, what follows by mode, and when override deny is right.',
  ),
  document(
    'concepts/enforcement-modes',
    'Enforcement modes',
    'idle, visibility_only, selective, full: what each enforces, the rollout order, mixed modes.',
  ),
  document(
    'concepts/segmentation',
    'Segmentation and ringfencing',
    'Labels and scopes, intra- and extra-scope rules, standard and selective ringfences, infrastructure first.',
  ),
  document(
    'concepts/draft-active-policy',
    'Draft and active policy',
    'The two versions of policy, what is provisioned and what acts at once, and what to check before.',
  ),
  document(
    'concepts/workloads',
    'Workload types',
    'Managed and unmanaged workloads, what is per workload, the rollout order of VENs.',
  ),
  document(
    'architecture/pce-ven',
    'PCE and VEN',
    'Components, deployments and sizing, and what happens when the PCE cannot be reached.',
  ),
  document(
    'architecture/labels',
    'Label design',
    'role, app, env, loc: independent dimensions, sources of values, anti-patterns.',
  ),
  document(
    'methodology/first-principles',
    'FIRST method',
    'Find metadata, Identify labels, Reach out to owners, Start with core services, Target ringfencing.',
  ),
  document(
    'methodology/core-services',
    'Core services first',
    'Which services everything depends on, how they are scored, and why their policy comes before ringfences.',
  ),
  document(
    'methodology/ringfencing-patterns',
    'Ringfencing patterns',
    'Three depths of a ringfence, when to use which, and how they go with deny rules.',
  ),
  document(
    'methodology/crown-jewels',
    'Crown jewels',
    'Identifying the applications that matter most, fencing them role to role by port, watching them.',
  ),
  document(
    'operations/logging-monitoring',
    'Logging and SIEM',
    'Events, traffic summaries and internal logs, formats for a SIEM, what to alert on.',
  ),
  document(
    'operations/morning-report',
    'The morning report',
    'Five questions a day: blocked, offline, errors, pending, new; what only looks like a difference, what to act on.',
  ),
  document(
    'compliance/pci-dss',
    'PCI DSS v4.0',
    'Requirements 1, 2, 6, 7, 10, 11 by tool, the cardholder data environment, the order of validation.',
  ),
  document('compliance/dora', 'DORA', 'Articles 6 to 11, 17, 18, 25, 26, 28 by tool, and immediate isolation.'),
  document(
    'compliance/nist-800-53',
    'NIST SP 800-53 r5',
    'AC-3, AC-4, AC-17, AU-2, AU-6, CA-7, CM-7, IA-3, IR-4, IR-6, SC-7, SC-28, SI-4 by tool.',
  ),
  document(
    'compliance/iso-27001',
    'ISO/IEC 27001:2022',
    'Controls A.5.9, 5.23, 5.25, 8.20 to 8.23 and 8.26 by tool, and evidence for the audit.',
  ),
  document(
    'compliance/swift-csp',
    'SWIFT CSP',
    'Controls 1.1, 1.2, 1.4, 2.1, 2.4, 2.6, 4.1, 5.1, 6.1, 6.4 by tool, and the secure zone in labels.',
  ),
  document('compliance/cis-controls', 'CIS Controls v8', 'Controls 1 to 4, 6 to 9, 12, 13, 17 by tool and group.'),
  document(
    'compliance/hipaa',
    'HIPAA Security Rule',
    'Sections 164.308, 164.310 and 164.312 by tool, and health data in labels.',
  ),
  document(
    'compliance/segmentation-methodology',
    'Segmentation methodology for compliance',
    'Discovery, design, rollout, operations: the phases, their evidence, and which framework is checked by what.',
  ),
]

/** Returns the path of a document's Markdown file, relative to the folder `knowledge`. */
export const fileOf = ({ uri }: Document): string => `documents/${uri.slice(SCHEME.length)}.md`
