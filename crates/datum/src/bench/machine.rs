//! The machine of a run, as its capsule tells it.

use std::fs;

use envelope::result::Machine;
/// This machine. What it does not tell is `unknown`, or 0.
pub(super) fn this_machine() -> Machine {
    let kernel = |name: &str| read(&format!("/proc/sys/kernel/{name}")).map(|text| text.trim().to_owned());
    Machine {
        kernel: kernel("ostype")
            .zip(kernel("osrelease"))
            .map_or_else(unknown, |(name, release)| format!("{name} {release}")),
        cpu_model: read("/proc/cpuinfo").and_then(|text| cpu_model(&text)).unwrap_or_else(unknown),
        cpus: std::thread::available_parallelism().map_or(0, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        memory_bytes: read("/proc/meminfo").and_then(|text| memory_bytes(&text)).unwrap_or(0),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// `model name` on x86; ARM has no name there, and its part numbers stand for it.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let value = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    value("model name")
        .or_else(|| Some(format!("ARM implementer {} part {}", value("CPU implementer")?, value("CPU part")?)))
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_has_a_name_on_both_architectures() {
        let x86 = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor\nflags\t: a model name b\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Intel(R) Xeon(R) Processor"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("ARM implementer 0x41 part 0xd40"));
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(memory_bytes("MemTotal:       24684092 kB\nMemFree: 1 kB\n"), Some(24_684_092 * 1024));
        assert_eq!(memory_bytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn this_machine_has_cpus_and_a_kernel() {
        let machine = this_machine();
        assert!(machine.cpus > 0);
        assert!(machine.kernel.split_whitespace().count() >= 2, "{}", machine.kernel);
    }
}
