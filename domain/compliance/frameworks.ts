import { boundaryCoverage, internalCoverage, knownDependencies } from './judge-coverage.js'
import { isolation, leastPrivilege, ringfence } from './judge-policy.js'
import { auditTrail, resilienceTests, scannedWorkloads } from './judge-records.js'
import {
  clearText,
  directMailAndWeb,
  highRiskPorts,
  internetAccess,
  restrictedAccess,
  segregation,
} from './judge-traffic.js'
import { enforcementStage, flowEnforcement, inventory, watchedWorkloads } from './judge-workloads.js'
import { allOf, type Evaluator } from './verdict.js'

export interface ComplianceCheck {
  id: string
  name: string
  /** What the control requires, in our own words and not in those of the standard. */
  description: string
  evaluate: Evaluator
}

export interface Framework {
  /** The name of the framework that answers show. */
  name: string
  /** URI of the document that explains the framework (knowledge/documents/compliance). */
  document: string
  checks: readonly ComplianceCheck[]
}

const NIST_PORTS = [3389, 22, 23, 445, 135, 139, 1433, 3306, 5432] as const
const PORTS = {
  'pci-dss': [3389, 22, 23, 445, 1433, 3306, 5432, 1521],
  nist: NIST_PORTS,
  cis: [3389, 22, 23, 445, 135, 139, 21, 69],
  dora: [...NIST_PORTS, 1521, 27017, 6379],
  'iso-27001': [...NIST_PORTS, 21],
  'swift-csp': [3389, 22, 23, 445, 135, 139, 21, 80, 1433, 3306, 5432],
  hipaa: [...NIST_PORTS, 1521, 21, 80],
  general: [...NIST_PORTS, 1521, 27017, 6379, 9200],
} as const satisfies Record<string, readonly number[]>

export type FrameworkId = keyof typeof PORTS

const check = (id: string, name: string, description: string, evaluate: Evaluator): ComplianceCheck => ({
  id,
  name,
  description,
  evaluate,
})

/** All supported frameworks and their checks. Each check has an evaluator that determines its status. */
export const FRAMEWORKS: Readonly<Record<FrameworkId, Framework>> = {
  'pci-dss': {
    name: 'PCI-DSS v4.0',
    document: 'illumio://compliance/pci-dss',
    checks: [
      check(
        'PCI-1.3',
        'Access to and from the cardholder data environment',
        'Only known parties connect, in either direction.',
        restrictedAccess('both'),
      ),
      check(
        'PCI-1.4',
        'Trusted and untrusted networks',
        'Connections with the internet are controlled.',
        internetAccess('approved'),
      ),
      check(
        'PCI-2.1',
        'Secure configurations',
        'Only services that are needed are reachable, and no high-risk ones.',
        highRiskPorts(PORTS['pci-dss']),
      ),
      check('PCI-6.1', 'Secure systems and software', 'Systems are scanned for vulnerabilities.', scannedWorkloads),
      check('PCI-7.1', 'Access by business need to know', 'Rules permit only what is needed.', leastPrivilege),
    ],
  },
  dora: {
    name: 'DORA (EU 2022/2554)',
    document: 'illumio://compliance/dora',
    checks: [
      check(
        'DORA-9.2',
        'Protection and prevention',
        'Systems are not exposed on high-risk services.',
        highRiskPorts(PORTS.dora),
      ),
      check('DORA-9.3', 'Immediate isolation', 'Affected systems can be isolated at once.', isolation),
      check(
        'DORA-8.1',
        'Identification of assets and dependencies',
        'Assets are classified and their dependencies are known.',
        allOf(inventory, knownDependencies),
      ),
      check('DORA-10.1', 'Detection', 'Anomalous activity is detected.', allOf(auditTrail, watchedWorkloads)),
      check('DORA-25.1', 'Testing of ICT systems', 'Resilience is tested.', resilienceTests),
    ],
  },
  nist: {
    name: 'NIST SP 800-53 Rev. 5',
    document: 'illumio://compliance/nist-800-53',
    checks: [
      check('AC-4', 'Information Flow Enforcement', 'Flows are controlled by enforced policy.', flowEnforcement),
      check('SC-7', 'Boundary Protection', 'Traffic across boundaries is governed by policy.', boundaryCoverage),
      check(
        'CM-7',
        'Least Functionality',
        'Services that are not needed are not reachable.',
        highRiskPorts(PORTS.nist),
      ),
      check(
        'SI-4',
        'System Monitoring',
        'Systems are monitored and activity is recorded.',
        allOf(auditTrail, watchedWorkloads),
      ),
    ],
  },
  cis: {
    name: 'CIS Controls v8',
    document: 'illumio://compliance/cis-controls',
    checks: [
      check(
        'CIS-9',
        'Email and Web Browser Protections',
        'Email, DNS and web traffic passes through filtering services.',
        directMailAndWeb,
      ),
      check('CIS-12', 'Network Infrastructure Management', 'The network is segmented.', ringfence),
      check(
        'CIS-13',
        'Network Monitoring and Defense',
        'Traffic is recorded, and filtered between segments.',
        allOf(watchedWorkloads, highRiskPorts(PORTS.cis)),
      ),
    ],
  },
  'iso-27001': {
    name: 'ISO/IEC 27001:2022',
    document: 'illumio://compliance/iso-27001',
    checks: [
      check('A.8.22', 'Segregation of networks', 'Groups of systems are kept apart.', segregation(PORTS['iso-27001'])),
      check('A.8.20', 'Networks security', 'Traffic is managed by policy.', boundaryCoverage),
      check(
        'A.5.9',
        'Inventory of information and other associated assets',
        'Every asset is known and classified.',
        inventory,
      ),
      check(
        'A.8.26',
        'Application security requirements',
        'Applications do not expose high-risk services.',
        highRiskPorts(PORTS['iso-27001']),
      ),
    ],
  },
  'swift-csp': {
    name: 'SWIFT CSP',
    document: 'illumio://compliance/swift-csp',
    checks: [
      check(
        'SWIFT-1.1',
        'SWIFT Environment Protection',
        'The secure zone is ringfenced, and only known parties enter it.',
        allOf(ringfence, restrictedAccess('inbound')),
      ),
      check(
        'SWIFT-1.4',
        'Restriction of Internet Access',
        'The secure zone has no internet access.',
        internetAccess('refused'),
      ),
      check(
        'SWIFT-2.1',
        'Internal Data Flow Security',
        'Flows between components are governed by policy.',
        internalCoverage,
      ),
      check(
        'SWIFT-5.1',
        'Logical Access Control',
        'Access follows least privilege, above all on high-risk services.',
        allOf(leastPrivilege, highRiskPorts(PORTS['swift-csp'])),
      ),
      check('SWIFT-6.4', 'Logging and Monitoring', 'Activity is recorded.', auditTrail),
    ],
  },
  hipaa: {
    name: 'HIPAA Security Rule',
    document: 'illumio://compliance/hipaa',
    checks: [
      check('164.312(a)', 'Access Control', 'Only known parties connect in.', restrictedAccess('inbound')),
      check('164.312(b)', 'Audit Controls', 'Activity is recorded.', auditTrail),
      check('164.312(e)', 'Transmission Security', 'Health data is not sent in the clear.', clearText),
      check(
        '164.308(a)(1)',
        'Security Management Process',
        'Risk is reduced, above all on high-risk services.',
        highRiskPorts(PORTS.hipaa),
      ),
    ],
  },
  general: {
    name: 'General segmentation',
    document: 'illumio://compliance/segmentation-methodology',
    checks: [
      check('SEG-1', 'Ringfencing', 'The application has its ringfence.', ringfence),
      check('SEG-2', 'Enforcement', 'Policy is enforced.', enforcementStage),
      check(
        'SEG-3',
        'High-risk ports',
        'High-risk services are not reachable from outside.',
        highRiskPorts(PORTS.general),
      ),
      check('SEG-4', 'Policy coverage', 'Traffic is permitted by policy.', boundaryCoverage),
    ],
  },
}
