export type Severity = 'critical' | 'high' | 'medium' | 'low'
export type Category = 'admin' | 'legacy'
export type Platform = 'windows' | 'linux'

export interface RiskyServiceSpec {
  name: string
  port: number
  proto: number
  severity: Severity
  category: Category
  platforms: readonly Platform[]
}

const TCP = 6
const risky = (
  name: string,
  port: number,
  severity: Severity,
  category: Category,
  ...platforms: Platform[]
): RiskyServiceSpec => ({ name, port, proto: TCP, severity, category, platforms })

/** Ports that ransomware is known to spread by, with the platforms that listen on them. No source lists the PCE's own. */
export const RISKY_SERVICES: readonly RiskyServiceSpec[] = [
  risky('SMB', 445, 'critical', 'admin', 'windows'),
  risky('RDP', 3389, 'critical', 'admin', 'windows'),
  risky('RPC', 135, 'critical', 'admin', 'windows'),
  risky('WinRM', 5985, 'high', 'admin', 'windows'),
  risky('NetBIOS', 139, 'high', 'legacy', 'windows'),
  risky('Telnet', 23, 'high', 'legacy', 'windows', 'linux'),
  risky('SSH', 22, 'medium', 'admin', 'linux'),
  risky('VNC', 5900, 'medium', 'admin', 'windows', 'linux'),
  risky('FTP', 21, 'medium', 'legacy', 'windows', 'linux'),
  risky('NFS', 2049, 'low', 'legacy', 'linux'),
  risky('SunRPC', 111, 'low', 'legacy', 'linux'),
]
