"""Records of WFDB in format 212, as PhysioNet publishes those of the MIT-BIH databases."""


def write_signals(folder, name, signals, rate=250):
    """Write a record of two leads in millivolts, in steps of 1/200."""
    import wfdb

    folder.mkdir(parents=True, exist_ok=True)
    wfdb.wrsamp(
        name,
        fs=rate,
        units=["mV"] * 2,
        sig_name=["ECG1", "ECG2"],
        p_signal=signals,
        fmt=["212"] * 2,
        adc_gain=[200] * 2,
        baseline=[0] * 2,
        write_dir=str(folder),
    )
