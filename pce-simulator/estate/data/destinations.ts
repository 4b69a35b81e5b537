/**
 * Internet host names with the addresses that they resolve to. The addresses of `*.example` names are in the
 * documentation ranges.
 */
export const DESTINATIONS: Readonly<Record<string, readonly string[]>> = {
  'api.cardnetwork.example': ['203.0.113.10', '203.0.113.11'],
  'settlement.bankhub.example': ['203.0.113.40'],
  'transfer.taxoffice.example': ['203.0.113.70'],
  'edi.logistics-partner.example': ['198.51.100.20', '198.51.100.21'],
  'api.parcelhub.example': ['198.51.100.30'],
  'api.riskscore.example': ['198.51.100.60'],
  'api.pushgate.example': ['198.51.100.61'],
  'api.mailblast.example': ['198.51.100.62'],
  'cdn.shopassets.example': ['192.0.2.10', '192.0.2.11', '192.0.2.12'],
  'telemetry.vendorcloud.example': ['192.0.2.77'],
  'packages.buildmirror.example': ['192.0.2.90', '192.0.2.91'],
  'api.anthropic.com': ['160.79.104.10'],
  'api.github.com': ['140.82.121.5', '140.82.121.6'],
  'api.push.apple.com': ['17.188.143.34'],
  'fcm.googleapis.com': ['142.250.185.74'],
  'login.microsoftonline.com': ['20.190.159.2', '20.190.159.64'],
  'login.salesforce.com': ['85.222.140.10'],
  'outlook.office365.com': ['52.97.233.66', '52.98.168.2'],
  's3.eu-central-1.amazonaws.com': ['52.219.170.10', '52.219.171.82'],
  'www.google-analytics.com': ['142.250.186.110'],
}

/** The websites that employees open on their laptops, each with the first three octets of its addresses. */
export const LAPTOP_DESTINATIONS: readonly (readonly [fqdn: string, network: string])[] = [
  ['outlook.office365.com', '52.97.233'],
  ['teams.microsoft.com', '52.113.194'],
  ['sharepoint.com', '13.107.136'],
  ['www.google.com', '142.250.185'],
  ['zoom.us', '170.114.52'],
  ['app.box.com', '74.112.186'],
  ['www.dropbox.com', '162.125.66'],
  ['github.com', '140.82.121'],
  ['claude.ai', '160.79.104'],
  ['news.daily.example', '192.0.2'],
  ['files.sharebin.example', '198.51.100'],
]

/** The first octets of the addresses from which visitors come. */
export const VISITOR_NETWORKS: readonly number[] = [31, 46, 62, 77, 81, 84, 87, 188, 212, 217]

/** The broadcast and multicast addresses to which hosts send, with protocol and port. */
export const GROUP_DESTINATIONS = [
  { ip: '224.0.0.251', transmission: 'multicast', proto: 17, port: 5353 },
  { ip: '239.255.255.250', transmission: 'multicast', proto: 17, port: 1900 },
  { ip: '224.0.0.18', transmission: 'multicast', proto: 112, port: undefined },
  { ip: '10.255.255.255', transmission: 'broadcast', proto: 17, port: 137 },
  { ip: '255.255.255.255', transmission: 'broadcast', proto: 17, port: 67 },
] as const
