"""The verdict on each row of a batch: judged on the driver while the batch is small, else on executors."""
