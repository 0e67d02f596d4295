// Drives 'agentic mcp' by a client of the official TypeScript SDK and writes down what
// the client saw, as one JSON object. It judges nothing: the Go test does.
//
//   node driver.mjs CLIENT TRANSPORT < setup.json
//
// CLIENT is sdk (version 1), client (version 2, as an older client) or
// client-2026-07-28 (version 2 with that revision of the protocol). TRANSPORT is stdio
// or http.

import { readFileSync } from 'node:fs';
import Ajv2020 from 'ajv/dist/2020.js';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';

const [kind, transport] = process.argv.slice(2);
const setup = JSON.parse(readFileSync(0, 'utf8'));
const saw = {};
const open = [];

// connect gives a client. answer, if given, is what the person says when asked.
async function connect({ token = setup.tokens[0], confirm = false, answer } = {}) {
  const info = { name: 'mcpclients', version: '1.0.0' };
  const capabilities = answer ? { elicitation: {} } : {};
  const asked = [];
  const reply = async request => {
    asked.push(request.params.message);
    return answer();
  };
  let client, call;
  if (kind === 'sdk') {
    client = new v1.Client(info, { capabilities });
    if (answer) client.setRequestHandler(ElicitRequestSchema, reply);
    call = (p, o) => client.callTool(p, undefined, o);
  } else {
    const modern = kind.slice('client-'.length);
    client = new v2.Client(info, { capabilities, versionNegotiation: { mode: modern ? { pin: modern } : 'legacy' } });
    if (answer) client.setRequestHandler('elicitation/create', reply);
    call = (p, o) => client.callTool(p, o);
  }
  const stdio = { command: setup.command, args: confirm ? setup.confirmArgs : setup.args, stderr: 'inherit' };
  const url = new URL(confirm ? setup.confirmURL : setup.url);
  const http = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
  const [Stdio, Http] = kind === 'sdk' ? [Stdio1, Http1] : [Stdio2, v2.StreamableHTTPClientTransport];
  await client.connect(transport === 'stdio' ? new Stdio(stdio) : new Http(url, http));
  open.push(client);
  await client.listTools(); // the SDKs check results by the schemas of a listing
  return { client, asked, call: (name, args, options) => call({ name, arguments: args }, options) };
}

const brief = r => r.isError
  ? { error: r.content[0].text }
  : { ...pick(r.structuredContent), texts: r.content.length, words: r.content[0].text };
const pick = s => ({ state: s.state, id: s.request_id, repeated: s.repeated, next: s.next?.tool ?? null, open: s.open_requests?.map(o => o.request_id) ?? [], outcome: s.receipt?.outcome ?? null });
const apart = (...ids) => ({ agentic_call: { distinct_from: ids } });

// schemas compiles every schema as strictly as ajv can, and shows that the compiled one
// refuses what is wrong.
function schemas(tools, result) {
  const problems = [];
  let checks;
  for (const tool of tools) {
    for (const key of ['inputSchema', 'outputSchema']) {
      try {
        const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: false, logger: { log() {}, warn: w => problems.push(`${tool.name} ${key}: ${w}`), error: w => problems.push(`${tool.name} ${key}: ${w}`) } });
        const check = ajv.compile(tool[key]);
        if (tool.name === setup.tool && key === 'outputSchema') checks = check;
      } catch (e) {
        problems.push(`${tool.name} ${key}: ${e.message}`);
      }
    }
  }
  return { problems, right: checks(result), wrong: checks({ ...result, state: 'perhaps' }) || checks({ ...result, receipt: {} }) };
}

async function main() {
  const a = await connect();
  const { tools } = await a.client.listTools();
  saw.version = a.client.getNegotiatedProtocolVersion?.() ?? null;
  saw.instructions = (a.client.getInstructions() ?? '').length > 0;
  saw.names = tools.map(t => t.name).sort();
  saw.annotated = tools.every(t => typeof t.annotations?.readOnlyHint === 'boolean');

  // One action, with progress; then the same again.
  const steps = [];
  const first = await a.call(setup.tool, { subject: 'one' }, { onprogress: p => steps.push(p) });
  saw.first = brief(first);
  saw.progress = { steps: steps.length, enough: steps.length >= 5, grows: steps.every((p, i) => i === 0 || p.progress > steps[i - 1].progress), sends: steps.filter(p => /^Sending it/.test(p.message)).length };
  saw.schemas = schemas(tools, first.structuredContent);
  saw.again = brief(await a.call(setup.tool, { subject: 'one' }));
  saw.wrong = brief(await a.call(setup.tool, { subject: 1 }));

  // Something that stays open holds another input back until it is named.
  saw.pending = brief(await a.call(setup.pendingTool, { subject: 'one' }));
  saw.held = brief(await a.call(setup.pendingTool, { subject: 'one, please' }));
  saw.distinct = brief(await a.call(setup.pendingTool, { subject: 'two', ...apart(...saw.held.open) }));
  saw.resumed = brief(await a.call('resume_request', { request_id: saw.pending.id }));

  // Prepared, shown, and sent once.
  saw.prepared = brief(await a.call('prepare_request', { tool: setup.tool, input: { subject: 'later' } }));
  const submit = { request_id: saw.prepared.id, distinct_from: [saw.first.id] };
  saw.submitted = brief(await a.call('submit_request', submit));
  saw.submittedAgain = brief(await a.call('submit_request', submit));

  // Resources.
  const read = async uri => JSON.parse((await a.client.readResource({ uri })).contents[0].text);
  saw.resources = (await a.client.listResources()).resources.map(r => r.uri);
  saw.templates = (await a.client.listResourceTemplates()).resourceTemplates.map(r => r.uriTemplate);
  saw.listed = (await read('agentic://requests')).requests.length;
  saw.read = (await read(`agentic://requests/${saw.first.id}`)).request_id;
  saw.missing = await read('agentic://requests/no-such-request').then(() => 'there', e => 'error ' + e.code);

  // A call that is given up goes on, and the next one finds it.
  const gone = new AbortController();
  const lost = { subject: 'lost', ...apart(saw.first.id, saw.submitted.id) };
  saw.cancelled = await a.call(setup.tool, lost, { signal: gone.signal, onprogress: () => gone.abort(new Error('given up')) }).then(brief, e => ({ thrown: String(e.message) }));
  saw.found = brief(await a.call(setup.tool, lost));
  for (let n = 0; saw.found.state === 'running' && n < 50; n++) {
    saw.found = brief(await a.call('resume_request', { request_id: saw.found.id }));
  }

  // A person is asked, and says no, then yes. A client that cannot ask is refused.
  let yes = false;
  const c = await connect({ confirm: true, answer: () => yes ? { action: 'accept', content: { send: true } } : { action: 'decline' } });
  saw.declined = brief(await c.call(setup.tool, { subject: 'ask', ...apart(saw.first.id, saw.submitted.id, saw.found.id) }));
  yes = true;
  saw.accepted = brief(await c.call(setup.tool, { subject: 'ask', ...apart(saw.first.id, saw.submitted.id, saw.found.id) }));
  saw.asked = c.asked.length;
  saw.question = c.asked.every(m => m.includes('{"subject":"ask"}') && m.includes('/tickets'));
  const mute = await connect({ confirm: true });
  saw.mute = brief(await mute.call(setup.tool, { subject: 'mute', ...apart(saw.first.id, saw.submitted.id, saw.found.id, saw.accepted.id) }));

  // Two principals by their tokens.
  if (transport === 'http') {
    const b = await connect({ token: setup.tokens[1] });
    saw.other = brief(await b.call(setup.tool, { subject: 'one' }));
    saw.otherShows = brief(await b.call('show_request', { request_id: saw.first.id }));
    saw.otherReads = await b.client.readResource({ uri: `agentic://requests/${saw.first.id}` }).then(() => 'there', e => 'error ' + e.code);
    saw.stranger = await connect({ token: 'nobody' }).then(() => 'connected', e => 'refused ' + (e.code === 401 || e.status === 401 || e.data?.status === 401 ? 401 : e.message));
  }
}

try {
  await main();
} catch (e) {
  saw.thrown = e.stack ?? String(e);
} finally {
  for (const c of open) await c.close().catch(() => {});
}
process.stdout.write(JSON.stringify(saw, null, 1) + '\n');
