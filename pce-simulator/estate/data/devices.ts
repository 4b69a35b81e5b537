export const SUPPORTED_DEVICES = [
  {
    device_type: 'switch',
    manufacturers: [
      { manufacturer: 'Cisco', models: [{ model: '9000', endpoint_type: 'switch_port' }] },
      { manufacturer: 'Arista', models: [{ model: '7000', endpoint_type: 'switch_port' }] },
    ],
  },
  {
    device_type: 'slb',
    manufacturers: [{ manufacturer: 'F5', models: [{ model: 'BIG-IP', endpoint_type: 'virtual_server' }] }],
  },
]

export const SWITCHES = [
  { name: 'core-switch-1', manufacturer: 'Cisco', model: '9000', ip_address: '10.10.255.1', ports: 2 },
  { name: 'core-switch-2', manufacturer: 'Arista', model: '7000', ip_address: '10.20.255.1', ports: 1 },
]

export const VIRTUAL_SERVERS = [
  { name: 'vs_web_shop_443', vip: '10.40.255.10', port: '443', locals: ['10.40.0.10', '10.40.0.11'] },
  { name: 'vs_ordering_443', vip: '10.40.255.11', port: '443', locals: ['10.40.0.12'] },
  { name: 'vs_portal_80', vip: '10.40.255.12', port: '80', locals: ['10.40.0.13'] },
]
