import type { ServicePort, WindowsService } from '../../../schemas/pce/service.js'
import { ALL_SERVICES_NAME } from '../../../schemas/pce/words.js'

export interface ServiceSpec {
  name: string
  ports?: readonly ServicePort[]
  windows?: readonly WindowsService[]
  windowsEgress?: readonly { service_name?: string; process_name?: string }[]
}

const tcp = (port: number, to_port?: number): ServicePort => ({
  port,
  ...(to_port === undefined ? {} : { to_port }),
  proto: 6,
})
const udp = (port: number): ServicePort => ({ port, proto: 17 })

/**
 * The services in the order of their ids; the first one is built in. The name S-HTTP is contained in S-HTTPS, and HTTP
 * in both, so that inexact lookups are noticed.
 */
export const SERVICES: readonly ServiceSpec[] = [
  { name: ALL_SERVICES_NAME, ports: [{ proto: -1 }] },
  { name: 'HTTP', ports: [tcp(80)] },
  { name: 'HTTPS', ports: [tcp(443)] },
  { name: 'S-HTTP', ports: [tcp(8080)] },
  { name: 'S-HTTPS', ports: [tcp(8443)] },
  { name: 'SSH', ports: [tcp(22)] },
  { name: 'RDP', ports: [tcp(3389), udp(3389)] },
  { name: 'DNS', ports: [udp(53), tcp(53)] },
  { name: 'NTP', ports: [udp(123)] },
  { name: 'LDAP', ports: [tcp(389), tcp(636), udp(389)] },
  { name: 'Kerberos', ports: [tcp(88), udp(88), tcp(464)] },
  { name: 'SMB', ports: [tcp(445), tcp(139)] },
  {
    name: 'Active Directory',
    ports: [tcp(88), udp(88), tcp(135), tcp(389), udp(389), tcp(445), tcp(464), tcp(636), tcp(49152, 65535)],
  },
  { name: 'PostgreSQL', ports: [tcp(5432)] },
  { name: 'MySQL', ports: [tcp(3306)] },
  { name: 'Microsoft SQL Server', ports: [tcp(1433), udp(1434)] },
  { name: 'Oracle', ports: [tcp(1521)] },
  { name: 'Redis', ports: [tcp(6379)] },
  { name: 'Kafka', ports: [tcp(9092)] },
  { name: 'Application ports', ports: [tcp(3000), tcp(5001), tcp(8080), tcp(8443), tcp(9000)] },
  { name: 'Ping', ports: [{ proto: 1, icmp_type: 8, icmp_code: 0 }] },
  { name: 'Monitoring agents', ports: [tcp(9100), tcp(5985, 5986)] },
  { name: 'Backup agents', ports: [tcp(13724), tcp(1556)] },
  { name: 'Syslog over TLS', ports: [tcp(6514)] },
  { name: 'Patching', ports: [tcp(80), tcp(8530, 8531)] },
  { name: 'Telnet', ports: [tcp(23)] },
  { name: 'IIS worker', windows: [{ process_name: '%systemroot%\\System32\\inetsrv\\w3wp.exe', port: 443, proto: 6 }] },
  { name: 'Print spooler', windows: [{ service_name: 'Spooler', port: 445, proto: 6 }] },
  {
    name: 'Windows Update client',
    windowsEgress: [{ service_name: 'wuauserv', process_name: '%systemroot%\\System32\\svchost.exe' }],
  },
]
