import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";

const START_MILLISECONDS = 60_000;

/** An API server from the directory that KUBEBUILDER_ASSETS names, with etcd, for the tests of one file. */
export class ApiServer {
  private constructor(
    readonly config: KubeConfig,
    private readonly folder: string,
    private readonly programs: Program[],
  ) {}

  static async start(): Promise<ApiServer> {
    const assets = process.env["KUBEBUILDER_ASSETS"];
    if (!assets) throw new Error("KUBEBUILDER_ASSETS is not set: it names a directory with etcd and kube-apiserver");
    const folder = await mkdtemp(join(tmpdir(), "apiserver-"));
    const programs: Program[] = [];
    try {
      const [clientPort, peerPort, securePort] = await freePorts(3);
      const token = randomBytes(16).toString("hex");
      const key = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const keyFile = join(folder, "service-account.key");
      await writeFile(keyFile, key.privateKey.export({ type: "sec1", format: "pem" }), { mode: 0o600 });
      await writeFile(join(folder, "tokens.csv"), `${token},admin,admin,system:masters\n`, { mode: 0o600 });

      programs.push(
        new Program(join(assets, "etcd"), [
          `--data-dir=${join(folder, "etcd")}`,
          `--listen-client-urls=http://127.0.0.1:${clientPort}`,
          `--advertise-client-urls=http://127.0.0.1:${clientPort}`,
          `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
          "--unsafe-no-fsync=true",
        ]),
        new Program(join(assets, "kube-apiserver"), [
          `--etcd-servers=http://127.0.0.1:${clientPort}`,
          `--cert-dir=${join(folder, "certificates")}`,
          "--bind-address=127.0.0.1",
          "--advertise-address=127.0.0.1",
          `--secure-port=${securePort}`,
          `--token-auth-file=${join(folder, "tokens.csv")}`,
          "--authorization-mode=RBAC",
          "--service-account-issuer=https://kubernetes.default.svc",
          `--service-account-key-file=${keyFile}`,
          `--service-account-signing-key-file=${keyFile}`,
          "--service-cluster-ip-range=10.0.0.0/24",
          "--disable-admission-plugins=ServiceAccount",
        ]),
      );
      const server = `https://127.0.0.1:${securePort}`;
      const certificate = await untilReady(server, join(folder, "certificates", "apiserver.crt"), programs);
      const config = new KubeConfig();
      config.loadFromClusterAndUser(
        { name: "test", server, caData: certificate.toString("base64"), skipTLSVerify: false },
        { name: "admin", token },
      );
      return new ApiServer(config, folder, programs);
    } catch (error) {
      await stopAll(programs, folder);
      throw error;
    }
  }

  async stop(): Promise<void> {
    await stopAll(this.programs, this.folder);
  }
}

/** A child process that keeps the end of its output for error messages. */
class Program {
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown>;
  #output = "";

  constructor(
    readonly path: string,
    flags: string[],
  ) {
    this.#process = spawn(path, flags, { stdio: ["ignore", "pipe", "pipe"] });
    this.#exit = once(this.#process, "exit").catch((error: Error) => {
      this.#output += error.message;
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-4000);
      });
    }
  }

  throwIfEnded(): void {
    const { pid, exitCode, signalCode } = this.#process;
    if (pid === undefined || exitCode !== null || signalCode !== null) {
      throw new Error(`${this.path} ended with ${exitCode ?? signalCode ?? "an error"}:\n${this.#output}`);
    }
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#exit;
  }
}

async function stopAll(programs: Program[], folder: string): Promise<void> {
  for (const program of programs.toReversed()) await program.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Wait until the API server is ready, and return the certificate that it created. */
async function untilReady(server: string, certificateFile: string, programs: Program[]): Promise<Buffer> {
  const deadline = Date.now() + START_MILLISECONDS;
  for (;;) {
    programs.forEach((program) => program.throwIfEnded());
    try {
      const certificate = await readFile(certificateFile);
      if ((await statusOf(`${server}/readyz`, certificate)) === 200) return certificate;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    if (Date.now() > deadline) throw new Error(`${server} is not ready after ${START_MILLISECONDS / 1000} s`);
    await sleep(20);
  }
}

async function statusOf(url: string, ca: Buffer): Promise<number | undefined> {
  const request = get(url, { ca, agent: false });
  const [response] = await once(request, "response");
  response.resume();
  return response.statusCode;
}

/** Return free ports. All are held until the last is known, so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
